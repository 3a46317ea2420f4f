#include "pool.h"
#include "memory.h"
#include "../shared/memfd.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK_UNIT ((size_t)32 << 20)
#define CHUNK_UNIT_SMALL ((size_t)2 << 20)

// A hole between blocks. A chunk's holes are in address order and never touch.
struct hole {
	struct hole *next;
	cu_ptr base;
	size_t size;
};

struct nc_chunk {
	struct nc_chunk *next;
	struct hole *holes;
	cu_ptr base;
	size_t size;
	size_t blocks;
	int fd; // memfd that holds the pages when the pool may be exported, else -1
};

static struct nc_pool *pools;
static struct nc_pool *defaults[NC_MAX_DEVICES];

struct nc_pool *nc_pool_new(int device, const cu_pool_props *props)
{
	struct nc_pool *pool = nc_object_new(NC_POOL_OBJECT, sizeof *pool, NULL);
	if (!pool)
		return NULL;
	pool->device = device;
	pool->props = *props;
	pool->reuse[0] = pool->reuse[1] = pool->reuse[2] = 1;
	pool->access[device] = CU_ACCESS_READ_WRITE;
	pool->fd = -1;
	pool->next = pools;
	pools = pool;
	return pool;
}

struct nc_pool *nc_pool_default(int device)
{
	const cu_pool_props props = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, device}};
	struct nc_pool **slot = &defaults[device];
	if (!*slot && (*slot = nc_pool_new(device, &props)))
		(*slot)->is_default = true;
	return *slot;
}

static void chunk_delete(struct nc_pool *pool, struct nc_chunk *chunk)
{
	nc_ledger_free(pool->device, NC_POOL, chunk->base, chunk->size, chunk->size);
	pool->reserved -= chunk->size;
	munmap((void *)chunk->base, chunk->size);
	if (chunk->fd >= 0)
		close(chunk->fd);
	for (struct hole *hole = chunk->holes, *next; hole; hole = next) {
		next = hole->next;
		free(hole);
	}
	free(chunk);
}

// Pages for a chunk: shareable ones have a memfd behind them. NULL when out of memory.
static void *chunk_pages(const struct nc_pool *pool, size_t size, int *fd)
{
	*fd = -1;
	if (!(pool->props.handle_types & CU_HANDLE_FD))
		return nc_pages_new(size);
	void *pages = MAP_FAILED;
	*fd = nc_memfd("nullcuda-chunk");
	if (*fd >= 0 && ftruncate(*fd, (off_t)size) == 0)
		pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, *fd, 0);
	if (pages != MAP_FAILED)
		return pages;
	if (*fd >= 0)
		close(*fd);
	return NULL;
}

// Adds a chunk with room for the request. The size is chosen before charging so
// that one failed request is one failure in the log.
static cu_result grow(struct nc_pool *pool, size_t bytes)
{
	size_t size = nc_round_up(bytes, CHUNK_UNIT);
	size_t limit = pool->props.max_size ? pool->props.max_size - pool->reserved : SIZE_MAX;
	if (size > limit || !nc_ledger_fits(pool->device, size))
		size = nc_round_up(bytes, CHUNK_UNIT_SMALL);
	if (size > limit)
		return CU_OUT_OF_MEMORY;
	struct nc_chunk *chunk = calloc(1, sizeof *chunk);
	struct hole *hole = calloc(1, sizeof *hole);
	int fd = -1;
	void *pages = chunk && hole ? chunk_pages(pool, size, &fd) : NULL;
	cu_result result = CU_OUT_OF_MEMORY;
	if (pages)
		result = nc_ledger_alloc(pool->device, NC_POOL, (uintptr_t)pages, size, size);
	if (result != CU_OK) {
		if (pages)
			munmap(pages, size);
		if (pages && fd >= 0)
			close(fd);
		free(chunk);
		free(hole);
		return result;
	}
	*hole = (struct hole){.base = (uintptr_t)pages, .size = size};
	*chunk = (struct nc_chunk){.next = pool->chunks, .holes = hole, .base = (uintptr_t)pages, .size = size, .fd = fd};
	pool->chunks = chunk;
	pool->reserved += size;
	if (pool->reserved > pool->reserved_high)
		pool->reserved_high = pool->reserved;
	return CU_OK;
}

// Takes the start of the first hole that is large enough. 0 when there is none.
static cu_ptr take(struct nc_pool *pool, size_t size, struct nc_chunk **chunk)
{
	for (*chunk = pool->chunks; *chunk; *chunk = (*chunk)->next)
		for (struct hole **link = &(*chunk)->holes, *hole; (hole = *link); link = &hole->next) {
			if (hole->size < size)
				continue;
			cu_ptr base = hole->base;
			hole->base += size;
			hole->size -= size;
			if (!hole->size) {
				*link = hole->next;
				free(hole);
			}
			(*chunk)->blocks++;
			return base;
		}
	return 0;
}

// Returns [base, base + size) to the chunk's holes, joining neighbours. When no
// hole can be recorded the bytes are lost until the chunk goes: never unsafe.
static void give(struct nc_chunk *chunk, cu_ptr base, size_t size)
{
	struct hole **link = &chunk->holes, *before = NULL;
	chunk->blocks--;
	while (*link && (*link)->base < base) {
		before = *link;
		link = &before->next;
	}
	struct hole *after = *link;
	if (before && before->base + before->size == base) {
		before->size += size;
	} else {
		struct hole *hole = malloc(sizeof *hole);
		if (!hole)
			return;
		*hole = (struct hole){after, base, size};
		*link = before = hole;
	}
	if (after && before->base + before->size == after->base) {
		before->size += after->size;
		before->next = after->next;
		free(after);
	}
}

cu_result nc_pool_alloc(struct nc_pool *pool, size_t bytes, struct nc_range **out)
{
	if (!bytes)
		return CU_INVALID_VALUE;
	if (bytes > NC_SIZE_MAX)
		return CU_OUT_OF_MEMORY;
	size_t size = nc_round_up(bytes, NC_UNIT);
	struct nc_chunk *chunk;
	struct nc_range *range = calloc(1, sizeof *range);
	cu_ptr base = range ? take(pool, size, &chunk) : 0;
	if (range && !base) {
		// Free chunks that are too small stand in the way of a new one.
		if (!nc_ledger_fits(pool->device, nc_round_up(bytes, CHUNK_UNIT_SMALL)))
			nc_pool_trim(pool, 0);
		if (grow(pool, size) == CU_OK)
			base = take(pool, size, &chunk);
	}
	if (!base) {
		free(range);
		return CU_OUT_OF_MEMORY;
	}
	*range = (struct nc_range){
		.base = base, .requested = bytes, .size = size, .kind = NC_ASYNC, .device = pool->device,
		.pool = pool, .chunk = chunk, .shared = chunk->fd >= 0,
	};
	pool->blocks++;
	pool->used += size;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	nc_range_insert(range);
	nc_ledger_alloc(pool->device, NC_ASYNC, base, bytes, size);
	*out = range;
	return CU_OK;
}

void nc_pool_free(struct nc_range *block)
{
	struct nc_pool *pool = block->pool;
	nc_range_remove(block);
	nc_ledger_free(block->device, NC_ASYNC, block->base, block->requested, block->size);
	give(block->chunk, block->base, block->size);
	pool->used -= block->size;
	free(block);
	nc_pool_unuse(pool);
}

void nc_pool_unuse(struct nc_pool *pool)
{
	pool->blocks--;
	if (pool->destroyed && !pool->blocks)
		nc_pool_destroy(pool);
}

struct nc_pool_piece nc_pool_piece_of(const struct nc_range *block)
{
	const struct nc_chunk *chunk = block->chunk;
	return (struct nc_pool_piece){chunk->base, chunk->size, chunk->fd};
}

void nc_pool_trim(struct nc_pool *pool, uint64_t keep)
{
	for (struct nc_chunk **link = &pool->chunks, *chunk; (chunk = *link) && pool->reserved > keep;) {
		if (chunk->blocks) {
			link = &chunk->next;
			continue;
		}
		*link = chunk->next;
		chunk_delete(pool, chunk);
	}
}

void nc_pool_trim_to_threshold(int device)
{
	for (struct nc_pool *pool = pools; pool; pool = pool->next)
		if (pool->device == device)
			nc_pool_trim(pool, pool->threshold);
}

void nc_pool_trim_device(int device)
{
	for (struct nc_pool *pool = pools; pool; pool = pool->next)
		if (pool->device == device)
			nc_pool_trim(pool, 0);
}

void nc_pool_destroy(struct nc_pool *pool)
{
	if (!pool->destroyed)
		nc_object_remove(pool);
	pool->destroyed = true;
	nc_pool_trim(pool, 0);
	if (pool->blocks)
		return;
	struct nc_pool **link = &pools;
	while (*link != pool)
		link = &(*link)->next;
	*link = pool->next;
	if (pool->fd >= 0)
		close(pool->fd);
	free(pool);
}
