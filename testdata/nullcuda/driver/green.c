// Green contexts: a share of a device's multiprocessors. Nothing runs here, so a share
// is a number; what counts is that a green context keeps the primary context of its
// device alive and owns no memory: what is allocated under it belongs to that one.
#include "context.h"
#include "object.h"
#include "stream.h"

#include <string.h>

// As cuDeviceGetAttribute says, and the hardware's unit of partition.
enum { MULTIPROCESSORS = 132, PARTITION = 8, FINE_PARTITION = 2 };
enum { DEFAULT_STREAM = 1 };

// What a resource carries for the driver, so that one made up is known as such.
struct provenance {
	char magic[16];
	int32_t device;
	bool group; // the result of a split: must become a descriptor before it is split again
};
static const char provenance_magic[16] = "nullcuda share";

struct nc_descriptor {
	struct nc_object object;
	cu_dev_resource resource;
};

struct nc_green {
	struct nc_object object;
	struct nc_context *context; // as which it can be made current
	cu_dev_resource resource;
};

static cu_dev_resource share(int device, unsigned count, bool group)
{
	struct provenance provenance = {.device = device, .group = group};
	cu_dev_resource resource = {
		.type = CU_RESOURCE_SM, .sm = {.count = count, .min_partition = PARTITION, .alignment = PARTITION}};
	memcpy(provenance.magic, provenance_magic, sizeof provenance.magic);
	memcpy(resource.internal, &provenance, sizeof provenance);
	return resource;
}

static cu_result provenance_of(const cu_dev_resource *resource, struct provenance *out)
{
	if (resource->type != CU_RESOURCE_SM)
		return CU_INVALID_RESOURCE_TYPE;
	memcpy(out, resource->internal, sizeof *out);
	if (memcmp(out->magic, provenance_magic, sizeof out->magic) || !nc_device_valid(out->device) ||
		!resource->sm.count || resource->sm.count > MULTIPROCESSORS)
		return CU_INVALID_RESOURCE_CONFIGURATION;
	return CU_OK;
}

static cu_result answer(cu_dev_resource *out, int type, cu_dev_resource resource)
{
	if (!out)
		return CU_INVALID_VALUE;
	if (type != CU_RESOURCE_SM)
		return CU_INVALID_RESOURCE_TYPE;
	*out = resource;
	return CU_OK;
}

static cu_result find_green(void *handle, struct nc_green **green)
{
	*green = nc_object_find(handle, NC_GREEN);
	return *green ? CU_OK : CU_INVALID_CONTEXT;
}

CU_API cuDeviceGetDevResource(cu_device device, cu_dev_resource *out, int type)
{
	NC_TRY(nc_init_check());
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	return answer(out, type, share(device, MULTIPROCESSORS, false));
}

static void match_context(void *object, void *argument)
{
	struct nc_green *green = object;
	struct { void *handle; struct nc_green *found; } *search = argument;
	if (green->context == search->handle)
		search->found = green;
}

CU_API cuCtxGetDevResource(void *handle, cu_dev_resource *out, int type)
{
	struct nc_context *context;
	struct { void *handle; struct nc_green *found; } search = {handle, NULL};
	NC_ENTER();
	NC_TRY(nc_context_from_handle(handle, &context));
	nc_object_each(NC_GREEN, match_context, &search);
	return answer(out, type, search.found ? search.found->resource : share(context->device, MULTIPROCESSORS, false));
}

CU_API cuGreenCtxGetDevResource(void *handle, cu_dev_resource *out, int type)
{
	struct nc_green *green;
	NC_ENTER();
	NC_TRY(find_green(handle, &green));
	return answer(out, type, green->resource);
}

CU_API cuStreamGetDevResource(void *handle, cu_dev_resource *out, int type)
{
	struct nc_stream *stream;
	NC_ENTER();
	NC_TRY(nc_stream_from_handle(handle, &stream));
	return answer(out, type,
		stream->green ? stream->green->resource : share(stream->object.owner->device, MULTIPROCESSORS, false));
}

// As many equal groups as fit and are wanted. Without `result` only their number is asked.
CU_API cuDevSmResourceSplitByCount(cu_dev_resource *result, unsigned *groups, const cu_dev_resource *input,
                                   cu_dev_resource *remainder, unsigned flags, unsigned least)
{
	enum { IGNORE_COSCHEDULING = 1, FLAGS_VALID = 3 };
	struct provenance from;
	NC_TRY(nc_init_check());
	if (!groups || !input || flags & ~(unsigned)FLAGS_VALID)
		return CU_INVALID_VALUE;
	NC_TRY(provenance_of(input, &from));
	if (from.group || least > input->sm.count)
		return CU_INVALID_RESOURCE_CONFIGURATION;
	unsigned unit = flags & IGNORE_COSCHEDULING ? FINE_PARTITION : PARTITION;
	unsigned size = (unsigned)nc_round_up(least ? least : 1, unit), most = input->sm.count / size;
	if (!result) {
		*groups = most;
		return CU_OK;
	}
	unsigned made = *groups < most ? *groups : most, left = input->sm.count - made * size;
	for (unsigned i = 0; i < made; i++)
		result[i] = share(from.device, size, true);
	if (remainder)
		*remainder = left ? share(from.device, left, true) : (cu_dev_resource){0};
	*groups = made;
	return CU_OK;
}

// Descriptors have no end in the API: they live as long as the process.
CU_API cuDevResourceGenerateDesc(void **out, cu_dev_resource *resources, unsigned count)
{
	struct provenance first, other;
	unsigned total = 0;
	NC_TRY(nc_init_check());
	if (!out || !resources || !count)
		return CU_INVALID_VALUE;
	NC_TRY(provenance_of(&resources[0], &first));
	for (unsigned i = 0; i < count; i++) {
		NC_TRY(provenance_of(&resources[i], &other));
		total += resources[i].sm.count;
		if (other.device != first.device || total > MULTIPROCESSORS)
			return CU_INVALID_RESOURCE_CONFIGURATION;
	}
	NC_LOCKED();
	struct nc_descriptor *descriptor = nc_object_new(NC_DESCRIPTOR, sizeof *descriptor, NULL);
	if (!descriptor)
		return CU_OUT_OF_MEMORY;
	descriptor->resource = share(first.device, total, false);
	*out = descriptor;
	return CU_OK;
}

CU_API cuGreenCtxCreate(void **out, void *handle, cu_device device, unsigned flags)
{
	struct provenance from;
	struct nc_context *primary;
	NC_TRY(nc_init_check());
	if (!out || flags & ~(unsigned)DEFAULT_STREAM)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	NC_LOCKED();
	struct nc_descriptor *descriptor = nc_object_find(handle, NC_DESCRIPTOR);
	if (!descriptor)
		return CU_INVALID_VALUE;
	NC_TRY(provenance_of(&descriptor->resource, &from));
	if (from.device != device)
		return CU_INVALID_VALUE;
	NC_TRY(nc_context_retain_primary(device, &primary));
	struct nc_green *green = nc_object_new(NC_GREEN, sizeof *green, NULL);
	struct nc_context *context = green ? nc_context_new_green(primary) : NULL;
	if (!context) {
		if (green)
			nc_object_delete(green);
		nc_context_release_primary(device);
		return CU_OUT_OF_MEMORY;
	}
	green->context = context;
	green->resource = descriptor->resource;
	*out = green;
	return CU_OK;
}

CU_API cuGreenCtxDestroy(void *handle)
{
	struct nc_green *green;
	NC_ENTER();
	NC_TRY(find_green(handle, &green));
	int device = green->context->device;
	nc_stream_detach(green);
	nc_context_end_green(green->context);
	nc_object_delete(green);
	nc_context_release_primary(device);
	return CU_OK;
}

CU_API cuCtxFromGreenCtx(void **context, void *handle)
{
	struct nc_green *green;
	NC_ENTER();
	NC_TRY(find_green(handle, &green));
	if (!context)
		return CU_INVALID_VALUE;
	*context = green->context;
	return CU_OK;
}

CU_API cuGreenCtxGetId(void *handle, unsigned long long *id)
{
	struct nc_green *green;
	NC_ENTER();
	NC_TRY(find_green(handle, &green));
	if (!id)
		return CU_INVALID_VALUE;
	*id = green->context->id;
	return CU_OK;
}

CU_API cuGreenCtxStreamCreate(void **out, void *handle, unsigned flags, int priority)
{
	enum { NON_BLOCKING = 1 };
	struct nc_green *green;
	NC_ENTER();
	NC_TRY(find_green(handle, &green));
	if (!out || flags != NON_BLOCKING)
		return CU_INVALID_VALUE;
	struct nc_context *primary = green->context->base;
	if (!primary->live)
		return CU_CONTEXT_IS_DESTROYED;
	struct nc_stream *stream = nc_stream_new(primary, flags, priority);
	if (!stream)
		return CU_OUT_OF_MEMORY;
	stream->green = green;
	*out = stream;
	return CU_OK;
}

CU_API cuStreamGetGreenCtx(void *handle, void **green)
{
	struct nc_stream *stream;
	NC_ENTER();
	NC_TRY(nc_stream_from_handle(handle, &stream));
	if (!green)
		return CU_INVALID_VALUE;
	*green = stream->green;
	return CU_OK;
}

cu_result cuCtxRecordEvent(void *context, void *event);
cu_result cuCtxWaitEvent(void *context, void *event);

CU_API cuGreenCtxRecordEvent(void *handle, void *event)
{
	void *context;
	NC_TRY(cuCtxFromGreenCtx(&context, handle));
	return cuCtxRecordEvent(context, event);
}

CU_API cuGreenCtxWaitEvent(void *handle, void *event)
{
	void *context;
	NC_TRY(cuCtxFromGreenCtx(&context, handle));
	return cuCtxWaitEvent(context, event);
}
