// Pinned host memory: allocated here, or the program's own and registered.
#include "context.h"
#include "memory.h"

#include <stdlib.h>

enum { HOST_ALLOC_FLAGS = 7, HOST_REGISTER_FLAGS = 15 };

CU_API cuMemHostAlloc(void **address, size_t bytes, unsigned flags)
{
	NC_CURRENT(context);
	if (!address || flags & ~(unsigned)HOST_ALLOC_FLAGS)
		return CU_INVALID_VALUE;
	struct nc_range *range;
	NC_LOCKED();
	NC_TRY(nc_memory_new(context, NC_HOST, bytes, &range));
	range->flags = flags;
	*address = (void *)range->base;
	return CU_OK;
}

CU_API cuMemAllocHost_v2(void **address, size_t bytes) { return cuMemHostAlloc(address, bytes, 0); }

CU_API cuMemFreeHost(void *address)
{
	NC_CURRENT(context);
	if (!address)
		return CU_OK;
	NC_LOCKED();
	struct nc_range *range = nc_range_based((uintptr_t)address);
	if (!range || range->kind != NC_HOST || range->registered)
		return CU_INVALID_VALUE;
	nc_memory_release(range);
	return CU_OK;
}

CU_API cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags)
{
	NC_CURRENT(context);
	cu_ptr base = (uintptr_t)address;
	if (!address || !bytes || bytes > NC_SIZE_MAX || base > UINT64_MAX - bytes ||
		flags & ~(unsigned)HOST_REGISTER_FLAGS)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_range *after = nc_range_after(base);
	if (after && after->base < base + bytes)
		return CU_HOST_MEMORY_ALREADY_REGISTERED;
	struct nc_range *range = calloc(1, sizeof *range);
	if (!range)
		return CU_OUT_OF_MEMORY;
	*range = (struct nc_range){
		.base = base, .requested = bytes, .size = bytes, .charged = bytes, .kind = NC_HOST,
		.device = context->device, .owner = context, .flags = flags, .registered = true,
	};
	nc_range_insert(range);
	nc_ledger_alloc(context->device, NC_HOST, base, bytes, bytes);
	return CU_OK;
}

CU_API cuMemHostRegister(void *address, size_t bytes, unsigned flags)
{
	return cuMemHostRegister_v2(address, bytes, flags);
}

CU_API cuMemHostUnregister(void *address)
{
	NC_CURRENT(context);
	if (!address)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_range *range = nc_range_based((uintptr_t)address);
	if (!range || !range->registered)
		return CU_HOST_MEMORY_NOT_REGISTERED;
	nc_memory_release(range);
	return CU_OK;
}

CU_API cuMemHostGetDevicePointer_v2(cu_ptr *device_address, void *address, unsigned flags)
{
	NC_CURRENT(context);
	if (!device_address || flags)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_range *range = nc_range_at((uintptr_t)address);
	if (!range || range->kind != NC_HOST)
		return CU_INVALID_VALUE;
	*device_address = (uintptr_t)address;
	return CU_OK;
}

CU_API cuMemHostGetFlags(unsigned *flags, void *address)
{
	enum { DEVICEMAP = 2 };
	NC_CURRENT(context);
	if (!flags)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_range *range = nc_range_at((uintptr_t)address);
	if (!range || range->kind != NC_HOST || range->registered)
		return CU_INVALID_VALUE;
	*flags = range->flags | DEVICEMAP; // always set where addresses are unified
	return CU_OK;
}
