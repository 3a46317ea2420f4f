#include "memory.h"
#include "context.h"
#include "graph_memory.h"
#include "ipc.h"
#include "page.h"
#include "pool.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, PITCH_UNIT = 512 };

void *nc_pages_new(size_t bytes)
{
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return pages == MAP_FAILED ? NULL : pages;
}

cu_result nc_memory_new(struct nc_context *context, enum nc_kind kind, size_t bytes, struct nc_range **out)
{
	if (!bytes)
		return CU_INVALID_VALUE;
	if (bytes > NC_SIZE_MAX)
		return CU_OUT_OF_MEMORY;
	size_t unit = kind == NC_DEVICE && nc_config()->page_bytes ? nc_config()->page_bytes : NC_UNIT;
	if (unit > NC_UNIT && bytes < NC_PAGE_SMALL)
		return nc_page_alloc(context, bytes, out);
	struct nc_range *range = calloc(1, sizeof *range);
	if (!range)
		return CU_OUT_OF_MEMORY;
	*range = (struct nc_range){
		.requested = bytes,
		.size = nc_round_up(bytes, NC_UNIT),
		.charged = nc_round_up(bytes, unit),
		.mapped = nc_round_up(bytes, PAGE),
		.kind = kind,
		.device = context->device,
		.owner = context,
	};
	void *pages = nc_pages_new(range->mapped);
	range->base = (uintptr_t)pages;
	cu_result result = CU_OUT_OF_MEMORY;
	if (pages)
		result = nc_ledger_alloc(range->device, kind, range->base, bytes, range->charged);
	if (result != CU_OK) {
		if (pages)
			munmap(pages, range->mapped);
		free(range);
		return result;
	}
	nc_range_insert(range);
	*out = range;
	return CU_OK;
}

void nc_memory_release(struct nc_range *range)
{
	if (range->kind == NC_ASYNC) {
		if (range->pool)
			nc_pool_free(range);
		else
			nc_graph_memory_end(range);
		return;
	}
	nc_range_remove(range);
	nc_ledger_free(range->device, range->kind, range->base, range->requested, range->charged);
	if (range->ipc)
		nc_ipc_forget(range->ipc);
	if (range->mapped)
		munmap((void *)(range->pages ? range->pages : range->base), range->mapped);
	if (range->page)
		nc_page_give(range);
	if (range->kind == NC_IPC && range->pool)
		nc_pool_unuse(range->pool);
	free(range);
}

static cu_result allocate(enum nc_kind kind, cu_ptr *address, size_t bytes, unsigned flags)
{
	NC_CURRENT(context);
	if (!address)
		return CU_INVALID_VALUE;
	struct nc_range *range;
	NC_LOCKED();
	NC_TRY(nc_memory_new(context, kind, bytes, &range));
	range->flags = flags;
	*address = range->base;
	return CU_OK;
}

CU_API cuMemAlloc_v2(cu_ptr *address, size_t bytes) { return allocate(NC_DEVICE, address, bytes, 0); }

CU_API cuMemAllocManaged(cu_ptr *address, size_t bytes, unsigned flags)
{
	enum { ATTACH_GLOBAL = 1, ATTACH_HOST = 2 };
	NC_TRY(nc_init_check());
	if (flags != ATTACH_GLOBAL && flags != ATTACH_HOST)
		return CU_INVALID_VALUE;
	return allocate(NC_MANAGED, address, bytes, flags);
}

CU_API cuMemAllocPitch_v2(cu_ptr *address, size_t *pitch, size_t width, size_t height, unsigned element)
{
	NC_TRY(nc_init_check());
	if (!address || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
		return CU_INVALID_VALUE;
	if (width > NC_SIZE_MAX || height > NC_SIZE_MAX / nc_round_up(width, PITCH_UNIT))
		return CU_OUT_OF_MEMORY;
	size_t row = nc_round_up(width, PITCH_UNIT);
	NC_TRY(allocate(NC_DEVICE, address, row * height, 0));
	*pitch = row;
	return CU_OK;
}

// Memory opened by cuIpcOpenMemHandle is closed, not freed; imported memory is freed.
bool nc_memory_is_freeable(const struct nc_range *range)
{
	switch (range->kind) {
	case NC_DEVICE: case NC_MANAGED: case NC_ASYNC: return true;
	case NC_IPC: return range->pool || range->external;
	default: return false;
	}
}

CU_API cuMemFree_v2(cu_ptr address)
{
	NC_CURRENT(context);
	if (!address)
		return CU_OK;
	NC_LOCKED();
	struct nc_range *range = nc_range_based(address);
	if (!range || !nc_memory_is_freeable(range))
		return CU_INVALID_VALUE;
	nc_memory_release(range);
	return CU_OK;
}

CU_API cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	NC_CURRENT(context);
	NC_LOCKED();
	if (free_bytes)
		*free_bytes = nc_ledger_free_bytes(context->device);
	if (total)
		*total = nc_config()->device_bytes - nc_config()->reserved_bytes;
	return CU_OK;
}

CU_API cuMemGetAddressRange_v2(cu_ptr *base, size_t *bytes, cu_ptr address)
{
	NC_CURRENT(context);
	NC_LOCKED();
	struct nc_range *range = nc_range_at(address);
	if (!range)
		return CU_NOT_FOUND;
	if (base)
		*base = range->base;
	if (bytes)
		*bytes = range->requested;
	return CU_OK;
}
