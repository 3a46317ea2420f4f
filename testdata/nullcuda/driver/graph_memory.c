#include "graph_memory.h"
#include "memory.h"

#include <stdlib.h>
#include <sys/mman.h>

#define SEGMENT_UNIT ((size_t)2 << 20)

// The addresses of one allocation node. They are never reused for another, so a
// segment lives as long as the process; without memory it costs only addresses.
struct segment {
	struct segment *next;
	cu_ptr base;
	size_t size;
	int device;
	bool charged, live;
};

static struct segment *segments;
static struct {
	uint64_t used, used_high, reserved, reserved_high;
} totals[NC_MAX_DEVICES];

static struct segment *segment_at(cu_ptr base)
{
	struct segment *segment = segments;
	while (segment && segment->base != base)
		segment = segment->next;
	return segment;
}

cu_result nc_graph_memory_reserve(int device, size_t bytes, cu_ptr *address)
{
	if (!bytes)
		return CU_INVALID_VALUE;
	if (bytes > NC_SIZE_MAX)
		return CU_OUT_OF_MEMORY;
	size_t size = nc_round_up(bytes, SEGMENT_UNIT);
	struct segment *segment = malloc(sizeof *segment);
	void *pages = segment ? nc_pages_new(size) : NULL;
	if (!pages) {
		free(segment);
		return CU_OUT_OF_MEMORY;
	}
	*segment = (struct segment){segments, (uintptr_t)pages, size, device, false, false};
	segments = segment;
	*address = segment->base;
	return CU_OK;
}

static cu_result charge(struct segment *segment)
{
	if (segment->charged)
		return CU_OK;
	NC_TRY(nc_ledger_alloc(segment->device, NC_POOL, segment->base, segment->size, segment->size));
	segment->charged = true;
	totals[segment->device].reserved += segment->size;
	if (totals[segment->device].reserved > totals[segment->device].reserved_high)
		totals[segment->device].reserved_high = totals[segment->device].reserved;
	return CU_OK;
}

cu_result nc_graph_memory_begin(cu_ptr address, size_t bytes)
{
	struct segment *segment = segment_at(address);
	if (!segment || segment->live)
		return CU_INVALID_VALUE;
	struct nc_range *range = calloc(1, sizeof *range);
	cu_result result = range ? charge(segment) : CU_OUT_OF_MEMORY;
	if (result != CU_OK) {
		free(range);
		return result;
	}
	int device = segment->device;
	*range = (struct nc_range){
		.base = address, .requested = bytes, .size = nc_round_up(bytes, NC_UNIT), .kind = NC_ASYNC,
		.device = device,
	};
	segment->live = true;
	totals[device].used += range->size;
	if (totals[device].used > totals[device].used_high)
		totals[device].used_high = totals[device].used;
	nc_range_insert(range);
	nc_ledger_alloc(device, NC_ASYNC, address, bytes, range->size);
	return CU_OK;
}

void nc_graph_memory_end(struct nc_range *block)
{
	segment_at(block->base)->live = false;
	totals[block->device].used -= block->size;
	nc_range_remove(block);
	nc_ledger_free(block->device, NC_ASYNC, block->base, block->requested, block->size);
	free(block);
}

void nc_graph_memory_trim(int device)
{
	for (struct segment *segment = segments; segment; segment = segment->next) {
		if (segment->device != device || !segment->charged || segment->live)
			continue;
		madvise((void *)segment->base, segment->size, MADV_DONTNEED);
		nc_ledger_free(device, NC_POOL, segment->base, segment->size, segment->size);
		totals[device].reserved -= segment->size;
		segment->charged = false;
	}
}

CU_API cuDeviceGraphMemTrim(cu_device device)
{
	NC_TRY(nc_init_check());
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	NC_LOCKED();
	nc_graph_memory_trim(device);
	return CU_OK;
}

enum { ATTR_USED, ATTR_USED_HIGH, ATTR_RESERVED, ATTR_RESERVED_HIGH };

CU_API cuDeviceGetGraphMemAttribute(cu_device device, int attribute, void *value)
{
	NC_TRY(nc_init_check());
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	if (!value || attribute < ATTR_USED || attribute > ATTR_RESERVED_HIGH)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	const uint64_t values[] = {totals[device].used, totals[device].used_high, totals[device].reserved,
	                           totals[device].reserved_high};
	*(uint64_t *)value = values[attribute];
	return CU_OK;
}

CU_API cuDeviceSetGraphMemAttribute(cu_device device, int attribute, void *value)
{
	NC_TRY(nc_init_check());
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	// Only the high-water marks can be set, and only to begin again.
	if (!value || *(uint64_t *)value || (attribute != ATTR_USED_HIGH && attribute != ATTR_RESERVED_HIGH))
		return CU_INVALID_VALUE;
	NC_LOCKED();
	if (attribute == ATTR_USED_HIGH)
		totals[device].used_high = totals[device].used;
	else
		totals[device].reserved_high = totals[device].reserved;
	return CU_OK;
}
