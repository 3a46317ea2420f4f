// What the driver knows about an address.
#include "context.h"
#include "pool.h"
#include "range.h"
#include "vmm.h"

#include <string.h>

enum attribute {
	ATTR_CONTEXT = 1,
	ATTR_MEMORY_TYPE,
	ATTR_DEVICE_POINTER,
	ATTR_HOST_POINTER,
	ATTR_P2P_TOKENS,
	ATTR_SYNC_MEMOPS,
	ATTR_BUFFER_ID,
	ATTR_IS_MANAGED,
	ATTR_DEVICE_ORDINAL,
	ATTR_IS_LEGACY_IPC_CAPABLE,
	ATTR_RANGE_START,
	ATTR_RANGE_SIZE,
	ATTR_MAPPED,
	ATTR_ALLOWED_HANDLE_TYPES,
	ATTR_IS_GPU_DIRECT_CAPABLE,
	ATTR_ACCESS_FLAGS,
	ATTR_MEMPOOL_HANDLE,
	ATTR_MAPPING_SIZE,
	ATTR_MAPPING_BASE,
	ATTR_MEMORY_BLOCK_ID,
	ATTR_IS_DECOMPRESS_CAPABLE,
	ATTR_LOCALITY_DOMAIN,
};

union value {
	void *pointer;
	cu_ptr address;
	uint64_t number;
	unsigned flags;
	int integer;
	bool truth;
};

// The bytes that the caller's variable has for an attribute, 0: unknown.
static size_t value_bytes(int attribute)
{
	switch (attribute) {
	case ATTR_CONTEXT: case ATTR_DEVICE_POINTER: case ATTR_HOST_POINTER: case ATTR_BUFFER_ID: case ATTR_RANGE_START:
	case ATTR_RANGE_SIZE: case ATTR_ALLOWED_HANDLE_TYPES: case ATTR_MEMPOOL_HANDLE: case ATTR_MAPPING_SIZE:
	case ATTR_MAPPING_BASE: case ATTR_MEMORY_BLOCK_ID:
		return 8;
	case ATTR_MEMORY_TYPE:
	case ATTR_DEVICE_ORDINAL:
	case ATTR_SYNC_MEMOPS:
	case ATTR_ACCESS_FLAGS:
	case ATTR_LOCALITY_DOMAIN: return 4;
	case ATTR_IS_MANAGED: case ATTR_IS_LEGACY_IPC_CAPABLE: case ATTR_MAPPED: case ATTR_IS_GPU_DIRECT_CAPABLE:
	case ATTR_IS_DECOMPRESS_CAPABLE:
		return 1;
	default:
		return 0;
	}
}

static bool is_host(const struct nc_range *range)
{
	return range->kind == NC_HOST || (range->handle && range->handle->kind == NC_HOST);
}

static uint64_t allowed_handle_types(const struct nc_range *range)
{
	if (range->pool)
		return (uint64_t)range->pool->props.handle_types;
	return range->handle ? (uint64_t)range->handle->prop.handle_types : 0;
}

// Device memory that no context owns belongs to the primary one in effect; VMM
// memory has none.
static cu_result context_of(const struct nc_range *range, union value *value)
{
	value->pointer = range->owner;
	return range->owner ? CU_OK : CU_INVALID_VALUE;
}

static unsigned access_flags(const struct nc_range *range)
{
	struct nc_context *context;
	if (nc_context_current(&context) != CU_OK)
		return CU_ACCESS_NONE;
	if (range->kind == NC_VMM)
		return range->access[context->device];
	if (range->pool)
		return range->pool->access[context->device];
	return is_host(range) || range->device == context->device || context->peers & 1u << range->device
	           ? CU_ACCESS_READ_WRITE : CU_ACCESS_NONE;
}

static cu_result query(const struct nc_range *range, cu_ptr address, int attribute, union value *value)
{
	switch (attribute) {
	case ATTR_CONTEXT: return context_of(range, value);
	case ATTR_MEMORY_TYPE: value->flags = is_host(range) ? CU_MEMORY_HOST : CU_MEMORY_DEVICE; return CU_OK;
	case ATTR_DEVICE_POINTER: value->address = address; return CU_OK;
	case ATTR_HOST_POINTER:
		value->address = address;
		return is_host(range) || range->kind == NC_MANAGED ? CU_OK : CU_INVALID_VALUE;
	case ATTR_SYNC_MEMOPS: value->integer = range->sync_memops; return CU_OK;
	case ATTR_BUFFER_ID: value->number = range->buffer_id; return CU_OK;
	case ATTR_IS_MANAGED: value->truth = range->kind == NC_MANAGED; return CU_OK;
	case ATTR_DEVICE_ORDINAL: value->integer = range->device; return CU_OK;
	case ATTR_IS_LEGACY_IPC_CAPABLE: value->truth = range->kind == NC_DEVICE; return CU_OK;
	case ATTR_RANGE_START: value->address = range->base; return CU_OK;
	case ATTR_RANGE_SIZE: value->number = range->requested; return CU_OK;
	case ATTR_MAPPED: value->truth = true; return CU_OK;
	case ATTR_ALLOWED_HANDLE_TYPES: value->number = allowed_handle_types(range); return CU_OK;
	case ATTR_IS_GPU_DIRECT_CAPABLE: value->truth = false; return CU_OK;
	case ATTR_ACCESS_FLAGS: value->flags = access_flags(range); return CU_OK;
	case ATTR_MEMPOOL_HANDLE: value->pointer = range->pool; return CU_OK;
	case ATTR_MAPPING_SIZE: value->number = range->size; return CU_OK;
	case ATTR_MAPPING_BASE: value->address = range->base; return CU_OK;
	case ATTR_MEMORY_BLOCK_ID: value->number = range->handle ? range->handle->id : range->buffer_id; return CU_OK;
	case ATTR_IS_DECOMPRESS_CAPABLE: value->truth = false; return CU_OK;
	case ATTR_LOCALITY_DOMAIN: value->integer = -1; return CU_OK;
	default: return CU_NOT_SUPPORTED;
	}
}

CU_API cuPointerGetAttribute(void *data, int attribute, cu_ptr address)
{
	union value value = {0};
	NC_TRY(nc_init_check());
	if (!data || attribute < ATTR_CONTEXT || attribute > ATTR_LOCALITY_DOMAIN)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_range *range = nc_range_at(address);
	if (!range)
		return CU_INVALID_VALUE;
	NC_TRY(query(range, address, attribute, &value));
	memcpy(data, &value, value_bytes(attribute));
	return CU_OK;
}

// Unlike the single query this one answers for unknown addresses, with zeros and
// a device ordinal of -2; so also for single attributes that do not apply.
CU_API cuPointerGetAttributes(unsigned count, int *attributes, void **data, cu_ptr address)
{
	NC_TRY(nc_init_check());
	if (!attributes || !data)
		return CU_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++)
		if (!data[i] || !value_bytes(attributes[i]))
			return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_range *range = nc_range_at(address);
	for (unsigned i = 0; i < count; i++) {
		union value value = {0};
		if (!range && attributes[i] == ATTR_DEVICE_ORDINAL)
			value.integer = -2;
		if (range && query(range, address, attributes[i], &value) != CU_OK)
			value = (union value){0};
		memcpy(data[i], &value, value_bytes(attributes[i]));
	}
	return CU_OK;
}

CU_API cuPointerSetAttribute(const void *value, int attribute, cu_ptr address)
{
	NC_TRY(nc_init_check());
	if (!value || attribute != ATTR_SYNC_MEMOPS)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_range *range = nc_range_at(address);
	if (!range)
		return CU_INVALID_VALUE;
	range->sync_memops = *(const unsigned *)value != 0;
	return CU_OK;
}

// Managed memory never moves, so advice about it is checked and forgotten.
static cu_result check_managed(cu_ptr address, size_t bytes)
{
	NC_ENTER();
	struct nc_range *range = nc_range_at(address);
	if (!range || range->kind != NC_MANAGED || !bytes || bytes > range->base + range->size - address)
		return CU_INVALID_VALUE;
	return CU_OK;
}

static cu_result check_place(cu_device device)
{
	return device == -1 || nc_device_valid(device) ? CU_OK : CU_INVALID_DEVICE;
}

static cu_result check_location(const cu_location *location)
{
	if (location->type == CU_LOCATION_DEVICE)
		return nc_device_valid(location->id) ? CU_OK : CU_INVALID_DEVICE;
	return location->type >= CU_LOCATION_HOST && location->type <= CU_LOCATION_HOST_NUMA_CURRENT ? CU_OK
																								 : CU_INVALID_VALUE;
}

CU_API cuMemPrefetchAsync(cu_ptr address, size_t bytes, cu_device device, void *stream)
{
	(void)stream;
	NC_TRY(check_managed(address, bytes));
	return check_place(device);
}

CU_API cuMemPrefetchAsync_v2(cu_ptr address, size_t bytes, cu_location location, unsigned flags, void *stream)
{
	(void)stream;
	NC_TRY(check_managed(address, bytes));
	return flags ? CU_INVALID_VALUE : check_location(&location);
}

CU_API cuMemAdvise(cu_ptr address, size_t bytes, int advice, cu_device device)
{
	NC_TRY(check_managed(address, bytes));
	return advice < 1 || advice > 6 ? CU_INVALID_VALUE : check_place(device);
}

CU_API cuMemAdvise_v2(cu_ptr address, size_t bytes, int advice, cu_location location)
{
	(void)location;
	NC_TRY(check_managed(address, bytes));
	return advice < 1 || advice > 6 ? CU_INVALID_VALUE : CU_OK;
}
