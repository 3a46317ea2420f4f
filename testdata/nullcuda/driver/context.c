#include "context.h"
#include "array.h"
#include "external.h"
#include "graph_memory.h"
#include "memory.h"
#include "module.h"
#include "pool.h"
#include "stream.h"

#include <stdlib.h>

static struct nc_context *contexts; // nc_lock
static struct nc_context primaries[NC_MAX_DEVICES];
static unsigned contexts_on[NC_MAX_DEVICES];
static uint64_t last_context_id;

enum { STACK_DEPTH = 64, API_VERSION = 3020, FLAGS_VALID = 0xff };
static __thread struct {
	struct nc_context *entry[STACK_DEPTH];
	int depth;
} stack;

// A green context does nothing itself: its primary one does.
static cu_result resolve(struct nc_context *handle, struct nc_context **context)
{
	*context = handle->base ? handle->base : handle;
	return handle->live && (*context)->live ? CU_OK : CU_CONTEXT_IS_DESTROYED;
}

cu_result nc_context_current(struct nc_context **context)
{
	NC_TRY(nc_init_check());
	if (!stack.depth)
		return CU_INVALID_CONTEXT;
	return resolve(stack.entry[stack.depth - 1], context);
}

// Contexts are never freed, so the list also knows those that are gone.
static struct nc_context *find(const void *handle)
{
	for (struct nc_context *context = contexts; context; context = context->next)
		if (context == handle)
			return context;
	return NULL;
}

cu_result nc_context_from_handle(void *handle, struct nc_context **context)
{
	if (!handle)
		return nc_context_current(context);
	struct nc_context *found = find(handle);
	return found ? resolve(found, context) : CU_INVALID_CONTEXT;
}

// Makes a context live, charging what it costs on the device.
static cu_result bring_up(struct nc_context *context)
{
	static const size_t limits[NC_LIMITS] = {1024, 1 << 20, 8 << 20, 2, 2048, 128, 0, 0, 0, 0, 0};
	uint64_t cost = nc_config()->context_bytes;
	if (cost)
		NC_TRY(nc_ledger_alloc(context->device, NC_CONTEXT, (uintptr_t)context, cost, cost));
	nc_ledger_context(context->device, +1);
	contexts_on[context->device]++;
	for (int i = 0; i < NC_LIMITS; i++)
		context->limits[i] = limits[i];
	context->api_version = API_VERSION;
	context->id = ++last_context_id;
	context->peers = 0;
	context->cache_config = context->shared_config = 0;
	context->default_streams[0] = context->default_streams[1] = NULL;
	context->live = true;
	if (!find(context)) {
		context->next = contexts;
		contexts = context;
	}
	return CU_OK;
}

// Frees all that the context owns. Memory goes last: nothing above it may still
// name an address when it is gone.
static void tear_down(struct nc_context *context)
{
	uint64_t cost = nc_config()->context_bytes;
	nc_object_sweep(context, NC_STREAM, nc_stream_destroy);
	nc_object_sweep(context, NC_EVENT, nc_event_destroy);
	nc_object_sweep(context, NC_MODULE_OBJECT, nc_module_destroy);
	nc_library_leave(context);
	nc_object_sweep(context, NC_TEXTURE, nc_object_delete);
	nc_object_sweep(context, NC_MIPMAP, nc_mipmap_destroy);
	nc_object_sweep(context, NC_ARRAY_OBJECT, nc_array_destroy);
	nc_object_sweep(context, NC_EXTERNAL, nc_external_destroy);
	nc_range_sweep(context, nc_memory_release);
	if (--contexts_on[context->device] == 0) {
		nc_pool_trim_device(context->device);
		nc_graph_memory_trim(context->device);
	}
	context->live = false;
	nc_ledger_context(context->device, -1);
	if (cost)
		nc_ledger_free(context->device, NC_CONTEXT, (uintptr_t)context, cost, cost);
}

static cu_result push(struct nc_context *context)
{
	if (stack.depth == STACK_DEPTH)
		return CU_OUT_OF_MEMORY;
	stack.entry[stack.depth++] = context;
	return CU_OK;
}

static cu_result create(void **handle, unsigned flags, cu_device device)
{
	NC_TRY(nc_init_check());
	if (!handle || flags & ~(unsigned)FLAGS_VALID)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	struct nc_context *context = calloc(1, sizeof *context);
	if (!context)
		return CU_OUT_OF_MEMORY;
	context->device = device;
	context->flags = flags;
	context->references = 1;
	NC_LOCKED();
	cu_result result = stack.depth < STACK_DEPTH ? bring_up(context) : CU_OUT_OF_MEMORY;
	if (result != CU_OK) {
		free(context);
		return result;
	}
	*handle = context;
	return push(context);
}

CU_API cuCtxCreate(void **handle, unsigned flags, cu_device device) { return create(handle, flags, device); }
CU_API cuCtxCreate_v2(void **handle, unsigned flags, cu_device device) { return create(handle, flags, device); }

CU_API cuCtxCreate_v3(void **handle, void *affinity, int affinity_count, unsigned flags, cu_device device)
{
	if (affinity_count < 0 || (affinity_count && !affinity))
		return CU_INVALID_VALUE;
	return create(handle, flags, device);
}

CU_API cuCtxCreate_v4(void **handle, void *params, unsigned flags, cu_device device)
{
	(void)params;
	return create(handle, flags, device);
}

static void destroy(struct nc_context *context)
{
	tear_down(context);
	if (stack.depth && stack.entry[stack.depth - 1] == context)
		stack.depth--;
}

// The counted life of contexts before CUDA 4.
CU_API cuCtxAttach(void **handle, unsigned flags)
{
	NC_CURRENT(context);
	if (!handle || flags)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	context->references++;
	*handle = context;
	return CU_OK;
}

CU_API cuCtxDetach(void *handle)
{
	NC_CURRENT(context);
	if (handle != context)
		return CU_INVALID_CONTEXT;
	NC_LOCKED();
	if (context->primary)
		return nc_context_release_primary(context->device);
	if (--context->references == 0)
		destroy(context);
	return CU_OK;
}

CU_API cuCtxDestroy_v2(void *handle)
{
	NC_ENTER();
	struct nc_context *context = find(handle);
	if (!context || context->primary || context->base)
		return CU_INVALID_CONTEXT;
	if (!context->live)
		return CU_CONTEXT_IS_DESTROYED;
	destroy(context);
	return CU_OK;
}

CU_API cuCtxDestroy(void *handle) { return cuCtxDestroy_v2(handle); }

CU_API cuCtxPushCurrent_v2(void *handle)
{
	NC_ENTER();
	struct nc_context *context = find(handle);
	if (!context)
		return CU_INVALID_CONTEXT;
	return context->live ? push(context) : CU_CONTEXT_IS_DESTROYED;
}

CU_API cuCtxPushCurrent(void *handle) { return cuCtxPushCurrent_v2(handle); }

CU_API cuCtxPopCurrent_v2(void **handle)
{
	NC_TRY(nc_init_check());
	if (!stack.depth)
		return CU_INVALID_CONTEXT;
	struct nc_context *context = stack.entry[--stack.depth];
	if (handle)
		*handle = context;
	return CU_OK;
}

CU_API cuCtxPopCurrent(void **handle) { return cuCtxPopCurrent_v2(handle); }

CU_API cuCtxSetCurrent(void *handle)
{
	NC_TRY(nc_init_check());
	if (!handle) {
		stack.depth -= stack.depth > 0;
		return CU_OK;
	}
	NC_LOCKED();
	struct nc_context *context = find(handle);
	if (!context)
		return CU_INVALID_CONTEXT;
	if (!context->live)
		return CU_CONTEXT_IS_DESTROYED;
	stack.depth -= stack.depth > 0;
	return push(context);
}

CU_API cuCtxGetCurrent(void **handle)
{
	NC_TRY(nc_init_check());
	if (!handle)
		return CU_INVALID_VALUE;
	*handle = stack.depth ? stack.entry[stack.depth - 1] : NULL;
	return CU_OK;
}

cu_result nc_context_retain_primary(int device, struct nc_context **out)
{
	struct nc_context *context = &primaries[device];
	context->primary = true;
	context->device = device;
	if (!context->live)
		NC_TRY(bring_up(context));
	context->references++;
	*out = context;
	return CU_OK;
}

// A reset ends the context and forgets no user: each may still release it, once.
cu_result nc_context_release_primary(int device)
{
	struct nc_context *context = &primaries[device];
	if (!context->references)
		return CU_INVALID_CONTEXT;
	if (--context->references == 0 && context->live)
		tear_down(context);
	return CU_OK;
}

struct nc_context *nc_context_new_green(struct nc_context *primary)
{
	struct nc_context *context = calloc(1, sizeof *context);
	if (!context)
		return NULL;
	*context = (struct nc_context){
		.next = contexts, .device = primary->device, .live = true, .base = primary, .id = ++last_context_id};
	contexts = context;
	return context;
}

void nc_context_end_green(struct nc_context *context) { context->live = false; }

CU_API cuDevicePrimaryCtxRetain(void **handle, cu_device device)
{
	NC_TRY(nc_init_check());
	if (!handle)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	struct nc_context *context;
	NC_LOCKED();
	NC_TRY(nc_context_retain_primary(device, &context));
	*handle = context;
	return CU_OK;
}

CU_API cuDevicePrimaryCtxRelease_v2(cu_device device)
{
	NC_TRY(nc_init_check());
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	NC_LOCKED();
	return nc_context_release_primary(device);
}

CU_API cuDevicePrimaryCtxRelease(cu_device device) { return cuDevicePrimaryCtxRelease_v2(device); }

CU_API cuDevicePrimaryCtxReset_v2(cu_device device)
{
	NC_TRY(nc_init_check());
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	NC_LOCKED();
	if (primaries[device].live)
		tear_down(&primaries[device]);
	primaries[device].flags = 0;
	return CU_OK;
}

CU_API cuDevicePrimaryCtxReset(cu_device device) { return cuDevicePrimaryCtxReset_v2(device); }

CU_API cuDevicePrimaryCtxSetFlags_v2(cu_device device, unsigned flags)
{
	NC_TRY(nc_init_check());
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	if (flags & ~(unsigned)FLAGS_VALID)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	primaries[device].flags = flags;
	return CU_OK;
}

CU_API cuDevicePrimaryCtxSetFlags(cu_device device, unsigned flags)
{
	NC_TRY(nc_init_check());
	if (nc_device_valid(device) && primaries[device].live)
		return CU_PRIMARY_CONTEXT_ACTIVE;
	return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CU_API cuDevicePrimaryCtxGetState(cu_device device, unsigned *flags, int *active)
{
	NC_TRY(nc_init_check());
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	if (!flags || !active)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	*flags = primaries[device].flags;
	*active = primaries[device].live;
	return CU_OK;
}
