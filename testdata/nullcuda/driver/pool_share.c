// Pools shared between processes. A pool that may be exported keeps its chunks in
// memfds. The descriptor that stands for the pool names its process; a block is
// passed as where it lies in which memfd of that process, and the importer opens
// that through /proc, so nothing needs a server.
#include "context.h"
#include "memory.h"
#include "pool.h"
#include "../shared/memfd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };

// What the pool's descriptor holds.
struct label {
	char magic[16];
	int32_t pid, device;
};
static const char label_magic[16] = "nullcuda pool";

// What is passed for a block.
struct ticket {
	char magic[8];
	int32_t pid, fd;      // of the chunk
	uint64_t chunk, pool; // inodes: which memfd that was, which pool it belongs to
	uint64_t offset, requested, size;
};
_Static_assert(sizeof(struct ticket) <= sizeof(cu_pool_export), "a ticket must fit what the program passes on");
static const char ticket_magic[8] = {'n', 'c', ' ', 'b', 'l', 'o', 'c', 'k'}; // no closing zero

static cu_result inode_of(int fd, uint64_t *inode)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return CU_INVALID_VALUE;
	*inode = st.st_ino;
	return CU_OK;
}

// Makes the descriptor that stands for the pool.
static cu_result label_pool(struct nc_pool *pool)
{
	struct label label = {.pid = getpid(), .device = pool->device};
	memcpy(label.magic, label_magic, sizeof label.magic);
	int fd = nc_memfd("nullcuda-pool");
	if (fd < 0)
		return CU_OPERATING_SYSTEM;
	if (pwrite(fd, &label, sizeof label, 0) != (ssize_t)sizeof label || inode_of(fd, &pool->inode) != CU_OK) {
		close(fd);
		return CU_OPERATING_SYSTEM;
	}
	pool->fd = fd;
	return CU_OK;
}

CU_API cuMemPoolExportToShareableHandle(void *out, void *handle, int type, unsigned long long flags)
{
	NC_TRY(nc_init_check());
	if (!out || flags)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_pool *pool = nc_object_find(handle, NC_POOL_OBJECT);
	if (!pool || pool->imported || type != CU_HANDLE_FD || !(pool->props.handle_types & type))
		return CU_INVALID_VALUE;
	if (pool->fd < 0)
		NC_TRY(label_pool(pool));
	int fd = fcntl(pool->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return CU_OPERATING_SYSTEM;
	*(int *)out = fd;
	return CU_OK;
}

// The descriptor stays the program's: it is read, not kept.
CU_API cuMemPoolImportFromShareableHandle(void **out, void *os_handle, int type, unsigned long long flags)
{
	struct label label;
	uint64_t inode;
	int fd = (int)(intptr_t)os_handle;
	NC_TRY(nc_init_check());
	if (!out || flags || type != CU_HANDLE_FD)
		return CU_INVALID_VALUE;
	if (pread(fd, &label, sizeof label, 0) != (ssize_t)sizeof label ||
		memcmp(label.magic, label_magic, sizeof label.magic) || !nc_device_valid(label.device))
		return CU_INVALID_VALUE;
	NC_TRY(inode_of(fd, &inode));
	const cu_pool_props props = {
		.type = CU_ALLOCATION_PINNED, .handle_types = CU_HANDLE_FD, .location = {CU_LOCATION_DEVICE, label.device},
	};
	NC_LOCKED();
	struct nc_pool *pool = nc_pool_new(label.device, &props);
	if (!pool)
		return CU_OUT_OF_MEMORY;
	pool->imported = true;
	pool->inode = inode;
	*out = pool;
	return CU_OK;
}

CU_API cuMemPoolExportPointer(cu_pool_export *out, cu_ptr address)
{
	NC_TRY(nc_init_check());
	if (!out)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_range *block = nc_range_based(address);
	// Graph memory has no pool, and only a pool that was exported can be known elsewhere.
	if (!block || block->kind != NC_ASYNC || !block->pool || block->pool->fd < 0)
		return CU_INVALID_VALUE;
	struct nc_pool_piece piece = nc_pool_piece_of(block);
	struct ticket ticket = {
		.pid = getpid(), .fd = piece.fd, .pool = block->pool->inode, .offset = block->base - piece.base,
		.requested = block->requested, .size = block->size,
	};
	NC_TRY(inode_of(piece.fd, &ticket.chunk));
	memcpy(ticket.magic, ticket_magic, sizeof ticket.magic);
	*out = (cu_pool_export){0};
	memcpy(out->data, &ticket, sizeof ticket);
	return CU_OK;
}

// Maps the pages around the block. CU_INVALID_VALUE when the exporter ended or gave the
// chunk back.
static cu_result map_block(const struct ticket *ticket, cu_ptr *pages, size_t *mapped)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", ticket->pid, ticket->fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return CU_INVALID_VALUE;
	uint64_t first = ticket->offset / PAGE * PAGE;
	void *there = MAP_FAILED;
	*mapped = nc_round_up(ticket->offset + ticket->size, PAGE) - first;
	if (fstat(fd, &st) == 0 && st.st_ino == ticket->chunk && ticket->offset + ticket->size <= (uint64_t)st.st_size)
		there = mmap(NULL, *mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)first);
	close(fd);
	*pages = (uintptr_t)there;
	return there == MAP_FAILED ? CU_INVALID_VALUE : CU_OK;
}

CU_API cuMemPoolImportPointer(cu_ptr *address, void *handle, const cu_pool_export *in)
{
	struct ticket ticket;
	NC_TRY(nc_init_check());
	if (!address || !in)
		return CU_INVALID_VALUE;
	memcpy(&ticket, in->data, sizeof ticket);
	if (memcmp(ticket.magic, ticket_magic, sizeof ticket.magic) || !ticket.size || ticket.size > NC_SIZE_MAX ||
	    ticket.offset > NC_SIZE_MAX || ticket.requested > ticket.size)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_pool *pool = nc_object_find(handle, NC_POOL_OBJECT);
	if (!pool || !pool->imported || pool->inode != ticket.pool)
		return CU_INVALID_VALUE;
	struct nc_range *range = calloc(1, sizeof *range);
	if (!range)
		return CU_OUT_OF_MEMORY;
	cu_ptr pages;
	size_t mapped;
	cu_result result = map_block(&ticket, &pages, &mapped);
	if (result != CU_OK) {
		free(range);
		return result;
	}
	*range = (struct nc_range){
		.base = pages + ticket.offset % PAGE, .requested = ticket.requested, .size = ticket.size, .pages = pages,
		.mapped = mapped, .kind = NC_IPC, .device = pool->device, .pool = pool, .shared = true,
	};
	pool->blocks++;
	nc_range_insert(range);
	nc_ledger_alloc(range->device, NC_IPC, range->base, range->requested, 0);
	*address = range->base;
	return CU_OK;
}
