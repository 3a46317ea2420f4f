#include "capture.h"
#include "stream.h"

#include <string.h>
#include <time.h>

enum { EVENT_DISABLE_TIMING = 2, EVENT_FLAGS = 7 };

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

void nc_event_destroy(void *event) { nc_object_delete(event); }

static struct nc_event *event_new(struct nc_context *context, unsigned flags)
{
	struct nc_event *event = nc_object_new(NC_EVENT, sizeof *event, context);
	if (event)
		event->flags = flags;
	return event;
}

CU_API cuEventCreate(void **handle, unsigned flags)
{
	NC_CURRENT(context);
	if (!handle || flags & ~(unsigned)EVENT_FLAGS)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	*handle = event_new(context, flags);
	return *handle ? CU_OK : CU_OUT_OF_MEMORY;
}

CU_API cuEventDestroy_v2(void *handle)
{
	NC_ENTER();
	struct nc_event *event = nc_object_find(handle, NC_EVENT);
	if (!event)
		return CU_INVALID_HANDLE;
	nc_event_destroy(event);
	return CU_OK;
}

CU_API cuEventDestroy(void *handle) { return cuEventDestroy_v2(handle); }

CU_API cuEventRecordWithFlags(void *handle, void *stream_handle, unsigned flags)
{
	struct nc_stream *stream;
	NC_TRY(nc_init_check());
	if (flags > 1)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	NC_TRY(nc_stream_from_handle(stream_handle, &stream));
	struct nc_event *event = nc_object_find(handle, NC_EVENT);
	if (!event)
		return CU_INVALID_HANDLE;
	if (stream->object.owner->device != event->object.owner->device)
		return CU_INVALID_HANDLE;
	event->capture_origin = stream->capture ? stream : NULL;
	event->capture_node = stream->capture ? stream->capture_last : NULL;
	if (stream->capture)
		return CU_OK;
	event->recorded = true;
	event->time = now_ns();
	return CU_OK;
}

CU_API cuEventRecord(void *handle, void *stream) { return cuEventRecordWithFlags(handle, stream, 0); }

CU_API cuStreamWaitEvent(void *stream_handle, void *handle, unsigned flags)
{
	struct nc_stream *stream;
	NC_TRY(nc_init_check());
	if (flags > 1)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	NC_TRY(nc_stream_from_handle(stream_handle, &stream));
	struct nc_event *event = nc_object_find(handle, NC_EVENT);
	if (!event)
		return CU_INVALID_HANDLE;
	return nc_capture_wait(stream, event);
}

CU_API cuEventQuery(void *handle)
{
	NC_ENTER();
	return nc_object_find(handle, NC_EVENT) ? CU_OK : CU_INVALID_HANDLE;
}

CU_API cuEventSynchronize(void *handle)
{
	NC_ENTER();
	struct nc_event *event = nc_object_find(handle, NC_EVENT);
	if (!event)
		return CU_INVALID_HANDLE;
	nc_context_synchronize(event->object.owner->device);
	return CU_OK;
}

CU_API cuEventElapsedTime(float *milliseconds, void *start_handle, void *end_handle)
{
	NC_TRY(nc_init_check());
	if (!milliseconds)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_event *start = nc_object_find(start_handle, NC_EVENT);
	struct nc_event *end = nc_object_find(end_handle, NC_EVENT);
	if (!start || !end || !start->recorded || !end->recorded)
		return CU_INVALID_HANDLE;
	if ((start->flags | end->flags) & EVENT_DISABLE_TIMING)
		return CU_INVALID_HANDLE;
	*milliseconds = (float)((double)(end->time - start->time) / 1e6);
	return CU_OK;
}

CU_API cuEventElapsedTime_v2(float *milliseconds, void *start, void *end)
{
	return cuEventElapsedTime(milliseconds, start, end);
}

CU_API cuCtxRecordEvent(void *context_handle, void *event_handle)
{
	struct nc_context *context;
	NC_ENTER();
	NC_TRY(nc_context_from_handle(context_handle, &context));
	struct nc_event *event = nc_object_find(event_handle, NC_EVENT);
	if (!event)
		return CU_INVALID_HANDLE;
	event->recorded = true;
	event->time = now_ns();
	return CU_OK;
}

CU_API cuCtxWaitEvent(void *context_handle, void *event_handle)
{
	struct nc_context *context;
	NC_ENTER();
	NC_TRY(nc_context_from_handle(context_handle, &context));
	return nc_object_find(event_handle, NC_EVENT) ? CU_OK : CU_INVALID_HANDLE;
}

// An event of another process is complete by the time its handle can be sent,
// because work is done when it is submitted. So the handle says only that it is
// one, and opening it makes an event that has already happened.
static const char ipc_event_magic[] = "nullcuda event";
enum { EVENT_INTERPROCESS = 4 };

CU_API cuIpcGetEventHandle(cu_ipc_handle *out, void *handle)
{
	NC_TRY(nc_init_check());
	if (!out)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_event *event = nc_object_find(handle, NC_EVENT);
	if (!event || !(event->flags & EVENT_INTERPROCESS))
		return CU_INVALID_HANDLE;
	*out = (cu_ipc_handle){0};
	memcpy(out->data, ipc_event_magic, sizeof ipc_event_magic);
	return CU_OK;
}

CU_API cuIpcOpenEventHandle(void **handle, cu_ipc_handle in)
{
	NC_CURRENT(context);
	if (!handle)
		return CU_INVALID_VALUE;
	if (memcmp(in.data, ipc_event_magic, sizeof ipc_event_magic))
		return CU_INVALID_HANDLE;
	NC_LOCKED();
	struct nc_event *event = event_new(context, EVENT_INTERPROCESS | EVENT_DISABLE_TIMING);
	if (!event)
		return CU_OUT_OF_MEMORY;
	event->recorded = true;
	event->time = now_ns();
	*handle = event;
	return CU_OK;
}
