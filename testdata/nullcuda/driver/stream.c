#include "stream.h"
#include "capture.h"

#include <string.h>

static uint64_t last_stream_id;

struct nc_stream *nc_stream_new(struct nc_context *context, unsigned flags, int priority)
{
	struct nc_stream *stream = nc_object_new(NC_STREAM, sizeof *stream, context);
	if (!stream)
		return NULL;
	stream->flags = flags;
	stream->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	stream->id = ++last_stream_id;
	return stream;
}

cu_result nc_stream_from_handle(void *handle, struct nc_stream **stream)
{
	if (handle && handle != NC_STREAM_LEGACY && handle != NC_STREAM_PER_THREAD) {
		*stream = nc_object_find(handle, NC_STREAM);
		if (!*stream)
			return CU_INVALID_HANDLE;
		return (*stream)->detached ? CU_STREAM_DETACHED : CU_OK;
	}
	NC_CURRENT(context);
	struct nc_stream **slot = &context->default_streams[handle == NC_STREAM_PER_THREAD];
	if (!*slot)
		*slot = nc_stream_new(context, 0, 0);
	*stream = *slot;
	return *stream ? CU_OK : CU_OUT_OF_MEMORY;
}

cu_result nc_stream_check(void *handle)
{
	struct nc_stream *stream;
	NC_ENTER();
	return nc_stream_from_handle(handle, &stream);
}

static void forget(void *object, void *graph)
{
	struct nc_stream *stream = object;
	if (stream->capture != graph)
		return;
	stream->capture = NULL;
	stream->capture_last = NULL;
	stream->capture_origin = false;
}

void nc_stream_forget_capture(struct nc_graph *graph) { nc_object_each(NC_STREAM, forget, graph); }

static void detach(void *object, void *green)
{
	struct nc_stream *stream = object;
	if (stream->green != green)
		return;
	nc_capture_abandon(stream);
	stream->green = NULL;
	stream->detached = true;
}

void nc_stream_detach(struct nc_green *green) { nc_object_each(NC_STREAM, detach, green); }

void nc_stream_destroy(void *object)
{
	struct nc_stream *stream = object;
	nc_capture_abandon(stream);
	nc_object_delete(stream);
}

CU_API cuStreamCreateWithPriority(void **handle, unsigned flags, int priority)
{
	NC_CURRENT(context);
	if (!handle || flags > 1)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	*handle = nc_stream_new(context, flags, priority);
	return *handle ? CU_OK : CU_OUT_OF_MEMORY;
}

CU_API cuStreamCreate(void **handle, unsigned flags) { return cuStreamCreateWithPriority(handle, flags, 0); }

CU_API cuStreamDestroy_v2(void *handle)
{
	NC_ENTER();
	struct nc_stream *stream = nc_object_find(handle, NC_STREAM);
	if (!stream)
		return CU_INVALID_HANDLE;
	nc_stream_destroy(stream);
	return CU_OK;
}

CU_API cuStreamDestroy(void *handle) { return cuStreamDestroy_v2(handle); }

// Opens a query: checks the result pointer, takes the lock, finds the stream.
#define STREAM_QUERY(out)                   \
	struct nc_stream *stream;           \
	NC_TRY(nc_init_check());            \
	if (!(out))                         \
		return CU_INVALID_VALUE;    \
	NC_LOCKED();                        \
	NC_TRY(nc_stream_from_handle(handle, &stream))

CU_API cuStreamGetPriority(void *handle, int *priority)
{
	STREAM_QUERY(priority);
	*priority = stream->priority;
	return CU_OK;
}

CU_API cuStreamGetFlags(void *handle, unsigned *flags)
{
	STREAM_QUERY(flags);
	*flags = stream->flags;
	return CU_OK;
}

CU_API cuStreamGetId(void *handle, unsigned long long *id)
{
	STREAM_QUERY(id);
	*id = stream->id;
	return CU_OK;
}

CU_API cuStreamGetCtx(void *handle, void **context)
{
	STREAM_QUERY(context);
	*context = stream->object.owner;
	return CU_OK;
}

CU_API cuStreamGetCtx_v2(void *handle, void **context, void **green)
{
	STREAM_QUERY(context);
	*context = stream->object.owner;
	if (green)
		*green = stream->green;
	return CU_OK;
}

CU_API cuStreamGetDevice(void *handle, cu_device *device)
{
	STREAM_QUERY(device);
	*device = stream->object.owner->device;
	return CU_OK;
}

CU_API cuStreamGetAttribute(void *handle, int attribute, void *value)
{
	// The value is a union of 64 bytes; all zeros is every attribute's default.
	(void)attribute;
	STREAM_QUERY(value);
	memset(value, 0, 64);
	return CU_OK;
}

CU_API cuStreamSetAttribute(void *handle, int attribute, const void *value)
{
	(void)attribute;
	STREAM_QUERY(value);
	return CU_OK;
}

CU_API cuStreamCopyAttributes(void *destination, void *source)
{
	NC_TRY(nc_stream_check(destination));
	return nc_stream_check(source);
}

CU_API cuStreamQuery(void *handle)
{
	NC_TRY(nc_stream_check(handle));
	return CU_OK;
}

CU_API cuStreamSynchronize(void *handle)
{
	struct nc_stream *stream;
	NC_ENTER();
	NC_TRY(nc_stream_from_handle(handle, &stream));
	if (stream->capture)
		return CU_STREAM_CAPTURE_UNSUPPORTED;
	nc_context_synchronize(stream->object.owner->device);
	return CU_OK;
}

CU_API cuStreamAttachMemAsync(void *handle, cu_ptr address, size_t length, unsigned flags)
{
	(void)address, (void)length, (void)flags;
	return nc_stream_check(handle);
}
