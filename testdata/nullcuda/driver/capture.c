#include "capture.h"

static uint64_t last_capture_id;
static __thread int thread_mode;

cu_result nc_capture_node(struct nc_stream *stream, const struct nc_work *work, bool *captured)
{
	*captured = stream->capture != NULL;
	if (!stream->capture)
		return CU_OK;
	void *last = stream->capture_last;
	return nc_graph_add(stream->capture, &last, last != NULL, work, &stream->capture_last);
}

cu_result nc_capture_submit(void *handle, const struct nc_work *work, bool *captured)
{
	struct nc_stream *stream;
	NC_ENTER();
	NC_TRY(nc_stream_from_handle(handle, &stream));
	return nc_capture_node(stream, work, captured);
}

// Makes one node that depends on two, so that a stream always has one last node.
static cu_result join(struct nc_stream *stream, struct nc_node *other)
{
	const struct nc_work empty = {.type = NC_NODE_EMPTY};
	void *both[2];
	size_t count = 0;
	if (stream->capture_last)
		both[count++] = stream->capture_last;
	if (other && other != stream->capture_last)
		both[count++] = other;
	if (count < 2) {
		stream->capture_last = count ? both[0] : NULL;
		return CU_OK;
	}
	return nc_graph_add(stream->capture, both, count, &empty, &stream->capture_last);
}

cu_result nc_capture_wait(struct nc_stream *stream, struct nc_event *event)
{
	struct nc_stream *origin = event->capture_origin;
	if (!origin || !nc_object_find(origin, NC_STREAM) || !origin->capture)
		return CU_OK;
	if (stream->capture && stream->capture != origin->capture)
		return CU_STREAM_CAPTURE_UNMATCHED;
	if (!stream->capture) {
		stream->capture = origin->capture;
		stream->capture_id = origin->capture_id;
		stream->capture_last = NULL;
		stream->capture->captures++;
	}
	return join(stream, event->capture_node);
}

// Takes every stream out of the capture and hands the graph over.
static struct nc_graph *finish(struct nc_graph *graph)
{
	nc_stream_forget_capture(graph);
	graph->captures = 0;
	graph->capturing = false;
	return graph;
}

void nc_capture_abandon(struct nc_stream *stream)
{
	if (!stream->capture || !stream->capture_origin)
		return;
	bool unseen = stream->capture->capturing;
	struct nc_graph *graph = finish(stream->capture);
	if (unseen)
		nc_graph_delete(graph);
}

static cu_result begin(void *handle, struct nc_graph *graph, int mode)
{
	struct nc_stream *stream;
	if (mode < 0 || mode > 2)
		return CU_INVALID_VALUE;
	NC_TRY(nc_stream_from_handle(handle, &stream));
	// The legacy stream synchronises with all others, which cannot be recorded.
	if (!handle || handle == NC_STREAM_LEGACY)
		return CU_STREAM_CAPTURE_UNSUPPORTED;
	if (stream->capture)
		return CU_ILLEGAL_STATE;
	stream->capture = graph ? graph : nc_graph_new();
	if (!stream->capture)
		return CU_OUT_OF_MEMORY;
	stream->capture->capturing = !graph;
	stream->capture->captures = 1;
	stream->capture_id = ++last_capture_id;
	stream->capture_last = graph ? graph->last : NULL;
	stream->capture_origin = true;
	return CU_OK;
}

CU_API cuStreamBeginCapture_v2(void *stream, int mode)
{
	NC_ENTER();
	return begin(stream, NULL, mode);
}

CU_API cuStreamBeginCapture(void *stream) { return cuStreamBeginCapture_v2(stream, 0); }

CU_API cuStreamBeginCaptureToGraph(
	void *stream, void *graph_handle, void *const *dependencies, const cu_edge_data *data, size_t count, int mode)
{
	(void)data;
	NC_ENTER();
	struct nc_graph *graph = nc_object_find(graph_handle, NC_GRAPH);
	if (!graph || (count && !dependencies))
		return CU_INVALID_VALUE;
	return begin(stream, graph, mode);
}

CU_API cuStreamEndCapture(void *handle, void **graph)
{
	struct nc_stream *stream;
	NC_TRY(nc_init_check());
	if (!graph)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	NC_TRY(nc_stream_from_handle(handle, &stream));
	*graph = NULL;
	if (!stream->capture)
		return CU_ILLEGAL_STATE;
	if (!stream->capture_origin)
		return CU_STREAM_CAPTURE_UNMATCHED;
	*graph = finish(stream->capture);
	return CU_OK;
}

CU_API cuStreamIsCapturing(void *handle, int *status)
{
	struct nc_stream *stream;
	NC_TRY(nc_init_check());
	if (!status)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	NC_TRY(nc_stream_from_handle(handle, &stream));
	*status = stream->capture != NULL;
	return CU_OK;
}

CU_API cuStreamGetCaptureInfo_v3(void *handle, int *status, uint64_t *id, void **graph, const void **dependencies,
                                 const void **edges, size_t *count)
{
	struct nc_stream *stream;
	NC_TRY(nc_init_check());
	if (!status)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	NC_TRY(nc_stream_from_handle(handle, &stream));
	*status = stream->capture != NULL;
	if (!stream->capture)
		return CU_OK;
	if (id)
		*id = stream->capture_id;
	if (graph)
		*graph = stream->capture;
	if (dependencies)
		*dependencies = &stream->capture_last; // valid until the stream's next call
	if (edges)
		*edges = NULL;
	if (count)
		*count = stream->capture_last != NULL;
	return CU_OK;
}

CU_API cuStreamGetCaptureInfo_v2(
	void *stream, int *status, uint64_t *id, void **graph, const void **dependencies, size_t *count)
{
	return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, NULL, count);
}

CU_API cuStreamGetCaptureInfo(void *stream, int *status, uint64_t *id)
{
	return cuStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
}

CU_API cuStreamUpdateCaptureDependencies_v2(
	void *handle, void *const *nodes, const cu_edge_data *data, size_t count, unsigned flags)
{
	enum { ADD = 0, SET = 1 };
	(void)data;
	struct nc_stream *stream;
	NC_TRY(nc_init_check());
	if (flags > SET || (count && !nodes))
		return CU_INVALID_VALUE;
	NC_LOCKED();
	NC_TRY(nc_stream_from_handle(handle, &stream));
	if (!stream->capture)
		return CU_ILLEGAL_STATE;
	for (size_t i = 0; i < count; i++) {
		struct nc_node *node = nc_object_find(nodes[i], NC_NODE);
		if (!node || node->graph != stream->capture)
			return CU_INVALID_VALUE;
	}
	if (flags == SET)
		stream->capture_last = NULL;
	for (size_t i = 0; i < count; i++)
		NC_TRY(join(stream, nodes[i]));
	return CU_OK;
}

CU_API cuStreamUpdateCaptureDependencies(void *stream, void *const *nodes, size_t count, unsigned flags)
{
	return cuStreamUpdateCaptureDependencies_v2(stream, nodes, NULL, count, flags);
}

CU_API cuThreadExchangeStreamCaptureMode(int *mode)
{
	NC_TRY(nc_init_check());
	if (!mode || *mode < 0 || *mode > 2)
		return CU_INVALID_VALUE;
	int old = thread_mode;
	thread_mode = *mode;
	*mode = old;
	return CU_OK;
}
