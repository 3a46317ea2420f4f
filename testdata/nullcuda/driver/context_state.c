// Properties of contexts: device, flags, limits, peers, synchronisation.
#include "context.h"
#include "pool.h"

void nc_context_synchronize(int device) { nc_pool_trim_to_threshold(device); }

CU_API cuCtxSynchronize(void)
{
	NC_CURRENT(context);
	NC_LOCKED();
	nc_context_synchronize(context->device);
	return CU_OK;
}

CU_API cuCtxSynchronize_v2(void *handle)
{
	NC_TRY(nc_init_check());
	struct nc_context *context;
	NC_LOCKED();
	NC_TRY(nc_context_from_handle(handle, &context));
	nc_context_synchronize(context->device);
	return CU_OK;
}

CU_API cuCtxGetDevice(cu_device *device)
{
	NC_CURRENT(context);
	if (!device)
		return CU_INVALID_VALUE;
	*device = context->device;
	return CU_OK;
}

CU_API cuCtxGetDevice_v2(cu_device *device, void *handle)
{
	NC_TRY(nc_init_check());
	if (!device)
		return CU_INVALID_VALUE;
	struct nc_context *context;
	NC_LOCKED();
	NC_TRY(nc_context_from_handle(handle, &context));
	*device = context->device;
	return CU_OK;
}

CU_API cuCtxGetFlags(unsigned *flags)
{
	NC_CURRENT(context);
	if (!flags)
		return CU_INVALID_VALUE;
	*flags = context->flags;
	return CU_OK;
}

CU_API cuCtxSetFlags(unsigned flags)
{
	NC_CURRENT(context);
	if (flags & ~0xffu)
		return CU_INVALID_VALUE;
	context->flags = flags;
	return CU_OK;
}

CU_API cuCtxGetId(void *handle, unsigned long long *id)
{
	NC_TRY(nc_init_check());
	if (!id)
		return CU_INVALID_VALUE;
	struct nc_context *context;
	NC_LOCKED();
	NC_TRY(nc_context_from_handle(handle, &context));
	*id = context->id;
	return CU_OK;
}

CU_API cuCtxGetApiVersion(void *handle, unsigned *version)
{
	NC_TRY(nc_init_check());
	if (!version)
		return CU_INVALID_VALUE;
	struct nc_context *context;
	NC_LOCKED();
	NC_TRY(nc_context_from_handle(handle, &context));
	*version = context->api_version;
	return CU_OK;
}

CU_API cuCtxGetLimit(size_t *value, int limit)
{
	NC_CURRENT(context);
	if (!value)
		return CU_INVALID_VALUE;
	if (limit < 0 || limit >= NC_LIMITS)
		return CU_UNSUPPORTED_LIMIT;
	*value = context->limits[limit];
	return CU_OK;
}

CU_API cuCtxSetLimit(int limit, size_t value)
{
	NC_CURRENT(context);
	if (limit < 0 || limit >= NC_LIMITS)
		return CU_UNSUPPORTED_LIMIT;
	context->limits[limit] = value;
	return CU_OK;
}

CU_API cuCtxGetCacheConfig(int *config)
{
	NC_CURRENT(context);
	if (!config)
		return CU_INVALID_VALUE;
	*config = context->cache_config;
	return CU_OK;
}

CU_API cuCtxSetCacheConfig(int config)
{
	NC_CURRENT(context);
	if (config < 0 || config > 3)
		return CU_INVALID_VALUE;
	context->cache_config = config;
	return CU_OK;
}

CU_API cuCtxGetSharedMemConfig(int *config)
{
	NC_CURRENT(context);
	if (!config)
		return CU_INVALID_VALUE;
	*config = context->shared_config;
	return CU_OK;
}

CU_API cuCtxSetSharedMemConfig(int config)
{
	NC_CURRENT(context);
	if (config < 0 || config > 2)
		return CU_INVALID_VALUE;
	context->shared_config = config;
	return CU_OK;
}

CU_API cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	NC_CURRENT(context);
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CU_OK;
}

CU_API cuCtxResetPersistingL2Cache(void)
{
	NC_CURRENT(context);
	return CU_OK;
}

CU_API cuDeviceCanAccessPeer(int *can, cu_device device, cu_device peer)
{
	NC_TRY(nc_init_check());
	if (!can)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(device) || !nc_device_valid(peer))
		return CU_INVALID_DEVICE;
	*can = device != peer;
	return CU_OK;
}

CU_API cuCtxEnablePeerAccess(void *peer, unsigned flags)
{
	NC_CURRENT(context);
	struct nc_context *other;
	if (flags)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	NC_TRY(nc_context_from_handle(peer, &other));
	if (other == context || other->device == context->device)
		return CU_INVALID_DEVICE;
	if (context->peers & 1u << other->device)
		return CU_PEER_ACCESS_ALREADY_ENABLED;
	context->peers |= 1u << other->device;
	return CU_OK;
}

CU_API cuCtxDisablePeerAccess(void *peer)
{
	NC_CURRENT(context);
	struct nc_context *other;
	NC_LOCKED();
	NC_TRY(nc_context_from_handle(peer, &other));
	if (!(context->peers & 1u << other->device))
		return CU_PEER_ACCESS_NOT_ENABLED;
	context->peers &= ~(1u << other->device);
	return CU_OK;
}

CU_API cuDeviceGetP2PAttribute(int *value, int attribute, cu_device source, cu_device destination)
{
	enum { PERFORMANCE_RANK = 1, ACCESS = 2, NATIVE_ATOMIC = 3, ARRAY_ACCESS = 4 };
	NC_TRY(nc_init_check());
	if (!value || attribute < PERFORMANCE_RANK || attribute > 5)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(source) || !nc_device_valid(destination) || source == destination)
		return CU_INVALID_DEVICE;
	*value = attribute == ACCESS || attribute == ARRAY_ACCESS;
	return CU_OK;
}
