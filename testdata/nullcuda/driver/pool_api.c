// The public side of asynchronous pools.
#include "capture.h"
#include "context.h"
#include "graph_memory.h"
#include "memory.h"
#include "pool.h"
#include "stream.h"


// The pool that cuMemAllocAsync uses, per device; NULL stands for the default.
static struct nc_pool *current[NC_MAX_DEVICES];

static struct nc_pool *current_pool(int device)
{
	return current[device] ? current[device] : nc_pool_default(device);
}

// In a capturing stream an allocation is a node, whose address is known at once.
static cu_result capture_alloc(struct nc_stream *stream, struct nc_pool *pool, size_t bytes, cu_ptr *address)
{
	bool captured;
	struct nc_work work = {.type = NC_NODE_ALLOC, .alloc = {.pool = pool->props, .size = bytes}};
	NC_TRY(nc_graph_memory_reserve(pool->device, bytes, &work.alloc.address));
	NC_TRY(nc_capture_node(stream, &work, &captured));
	*address = work.alloc.address;
	return CU_OK;
}

static cu_result allocate(cu_ptr *address, size_t bytes, void *pool_handle, bool from_pool, void *stream_handle)
{
	NC_TRY(nc_init_check());
	if (!address)
		return CU_INVALID_VALUE;
	struct nc_stream *stream;
	struct nc_range *range;
	NC_LOCKED();
	NC_TRY(nc_stream_from_handle(stream_handle, &stream));
	struct nc_context *context = stream->object.owner;
	struct nc_pool *pool = from_pool ? nc_object_find(pool_handle, NC_POOL_OBJECT) : current_pool(context->device);
	if (!pool)
		return from_pool ? CU_INVALID_VALUE : CU_OUT_OF_MEMORY;
	if (pool->imported)
		return CU_INVALID_VALUE;
	if (stream->capture)
		return capture_alloc(stream, pool, bytes, address);
	NC_TRY(nc_pool_alloc(pool, bytes, &range));
	*address = range->base;
	return CU_OK;
}

CU_API cuMemAllocAsync(cu_ptr *address, size_t bytes, void *stream)
{
	return allocate(address, bytes, NULL, false, stream);
}

CU_API cuMemAllocFromPoolAsync(cu_ptr *address, size_t bytes, void *pool, void *stream)
{
	return allocate(address, bytes, pool, true, stream);
}

CU_API cuMemFreeAsync(cu_ptr address, void *stream_handle)
{
	NC_TRY(nc_init_check());
	struct nc_stream *stream;
	NC_LOCKED();
	NC_TRY(nc_stream_from_handle(stream_handle, &stream));
	if (!address)
		return CU_OK;
	if (stream->capture) {
		bool captured;
		const struct nc_work work = {.type = NC_NODE_FREE, .free_address = address};
		return nc_capture_node(stream, &work, &captured);
	}
	struct nc_range *range = nc_range_based(address);
	if (!range || range->kind == NC_MANAGED || range->external || !nc_memory_is_freeable(range))
		return CU_INVALID_VALUE;
	nc_memory_release(range);
	return CU_OK;
}

// Device pools are all there is: host and managed pools need page migration.
static cu_result location_device(const cu_location *location, int type, int *device)
{
	if (!location)
		return CU_INVALID_VALUE;
	if (location->type != CU_LOCATION_DEVICE || type != CU_ALLOCATION_PINNED)
		return CU_NOT_SUPPORTED;
	if (!nc_device_valid(location->id))
		return CU_INVALID_DEVICE;
	*device = location->id;
	return CU_OK;
}

CU_API cuMemPoolCreate(void **handle, const cu_pool_props *props)
{
	int device;
	NC_TRY(nc_init_check());
	if (!handle || !props)
		return CU_INVALID_VALUE;
	NC_TRY(location_device(&props->location, props->type, &device));
	if (props->handle_types & ~CU_HANDLE_FD)
		return CU_NOT_SUPPORTED;
	NC_LOCKED();
	*handle = nc_pool_new(device, props);
	return *handle ? CU_OK : CU_OUT_OF_MEMORY;
}

CU_API cuMemPoolDestroy(void *handle)
{
	NC_ENTER();
	struct nc_pool *pool = nc_object_find(handle, NC_POOL_OBJECT);
	if (!pool || pool->is_default)
		return CU_INVALID_VALUE;
	for (int device = 0; device < NC_MAX_DEVICES; device++)
		if (current[device] == pool)
			current[device] = NULL;
	nc_pool_destroy(pool);
	return CU_OK;
}

CU_API cuMemPoolTrimTo(void *handle, size_t keep)
{
	NC_ENTER();
	struct nc_pool *pool = nc_object_find(handle, NC_POOL_OBJECT);
	if (!pool)
		return CU_INVALID_VALUE;
	nc_pool_trim(pool, keep);
	return CU_OK;
}

enum {
	ATTR_REUSE_FIRST = 1,
	ATTR_REUSE_LAST = 3,
	ATTR_RELEASE_THRESHOLD,
	ATTR_RESERVED_CURRENT,
	ATTR_RESERVED_HIGH,
	ATTR_USED_CURRENT,
	ATTR_USED_HIGH,
	ATTR_ALLOCATION_TYPE,
	ATTR_EXPORT_HANDLE_TYPES,
	ATTR_LOCATION_ID,
	ATTR_LOCATION_TYPE,
	ATTR_MAX_SIZE,
	ATTR_HW_DECOMPRESS,
};

CU_API cuMemPoolGetAttribute(void *handle, int attribute, void *value)
{
	NC_ENTER();
	struct nc_pool *pool = nc_object_find(handle, NC_POOL_OBJECT);
	if (!pool || !value)
		return CU_INVALID_VALUE;
	switch (attribute) {
	case ATTR_REUSE_FIRST ... ATTR_REUSE_LAST: *(int *)value = pool->reuse[attribute - 1]; break;
	case ATTR_RELEASE_THRESHOLD: *(uint64_t *)value = pool->threshold; break;
	case ATTR_RESERVED_CURRENT: *(uint64_t *)value = pool->reserved; break;
	case ATTR_RESERVED_HIGH: *(uint64_t *)value = pool->reserved_high; break;
	case ATTR_USED_CURRENT: *(uint64_t *)value = pool->used; break;
	case ATTR_USED_HIGH: *(uint64_t *)value = pool->used_high; break;
	case ATTR_ALLOCATION_TYPE: *(int *)value = pool->props.type; break;
	case ATTR_EXPORT_HANDLE_TYPES: *(int *)value = pool->props.handle_types; break;
	case ATTR_LOCATION_ID: *(int *)value = pool->device; break;
	case ATTR_LOCATION_TYPE: *(int *)value = CU_LOCATION_DEVICE; break;
	case ATTR_MAX_SIZE: *(uint64_t *)value = pool->props.max_size; break;
	case ATTR_HW_DECOMPRESS: *(int *)value = 0; break;
	default: return CU_INVALID_VALUE;
	}
	return CU_OK;
}

CU_API cuMemPoolSetAttribute(void *handle, int attribute, void *value)
{
	NC_ENTER();
	struct nc_pool *pool = nc_object_find(handle, NC_POOL_OBJECT);
	if (!pool || !value)
		return CU_INVALID_VALUE;
	switch (attribute) {
	case ATTR_REUSE_FIRST ... ATTR_REUSE_LAST:
		pool->reuse[attribute - 1] = *(int *)value != 0;
		return CU_OK;
	case ATTR_RELEASE_THRESHOLD:
		pool->threshold = *(uint64_t *)value;
		return CU_OK;
	// A high-water mark can only be reset; it starts again at what is there.
	case ATTR_RESERVED_HIGH:
		if (*(uint64_t *)value)
			return CU_INVALID_VALUE;
		pool->reserved_high = pool->reserved;
		return CU_OK;
	case ATTR_USED_HIGH:
		if (*(uint64_t *)value)
			return CU_INVALID_VALUE;
		pool->used_high = pool->used;
		return CU_OK;
	default:
		return CU_INVALID_VALUE;
	}
}

CU_API cuMemPoolSetAccess(void *handle, const cu_access_desc *access, size_t count)
{
	NC_ENTER();
	struct nc_pool *pool = nc_object_find(handle, NC_POOL_OBJECT);
	if (!pool || (count && !access))
		return CU_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (access[i].location.type != CU_LOCATION_DEVICE)
			return CU_INVALID_VALUE;
		if (!nc_device_valid(access[i].location.id))
			return CU_INVALID_DEVICE;
		if (access[i].location.id == pool->device && access[i].flags != CU_ACCESS_READ_WRITE)
			return CU_INVALID_VALUE;
	}
	for (size_t i = 0; i < count; i++)
		pool->access[access[i].location.id] = (unsigned char)access[i].flags;
	return CU_OK;
}

CU_API cuMemPoolGetAccess(int *flags, void *handle, cu_location *location)
{
	NC_ENTER();
	struct nc_pool *pool = nc_object_find(handle, NC_POOL_OBJECT);
	if (!pool || !flags || !location || location->type != CU_LOCATION_DEVICE)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(location->id))
		return CU_INVALID_DEVICE;
	*flags = pool->access[location->id];
	return CU_OK;
}

CU_API cuDeviceGetDefaultMemPool(void **handle, cu_device device)
{
	NC_TRY(nc_init_check());
	if (!handle)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	NC_LOCKED();
	*handle = nc_pool_default(device);
	return *handle ? CU_OK : CU_OUT_OF_MEMORY;
}

CU_API cuDeviceGetMemPool(void **handle, cu_device device)
{
	NC_TRY(nc_init_check());
	if (!handle)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	NC_LOCKED();
	*handle = current_pool(device);
	return *handle ? CU_OK : CU_OUT_OF_MEMORY;
}

CU_API cuDeviceSetMemPool(cu_device device, void *handle)
{
	NC_TRY(nc_init_check());
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	NC_LOCKED();
	struct nc_pool *pool = nc_object_find(handle, NC_POOL_OBJECT);
	if (!pool || pool->device != device || pool->imported)
		return CU_INVALID_VALUE;
	current[device] = pool;
	return CU_OK;
}

CU_API cuMemGetDefaultMemPool(void **handle, cu_location *location, int type)
{
	int device;
	NC_TRY(nc_init_check());
	NC_TRY(location_device(location, type, &device));
	return cuDeviceGetDefaultMemPool(handle, device);
}

CU_API cuMemGetMemPool(void **handle, cu_location *location, int type)
{
	int device;
	NC_TRY(nc_init_check());
	NC_TRY(location_device(location, type, &device));
	return cuDeviceGetMemPool(handle, device);
}

CU_API cuMemSetMemPool(cu_location *location, int type, void *handle)
{
	int device;
	NC_TRY(nc_init_check());
	NC_TRY(location_device(location, type, &device));
	return cuDeviceSetMemPool(device, handle);
}
