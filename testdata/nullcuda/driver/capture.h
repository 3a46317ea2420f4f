// Stream capture: while a stream captures, the work submitted to it becomes
// nodes of a graph instead of being done.
#ifndef NULLCUDA_CAPTURE_H
#define NULLCUDA_CAPTURE_H

#include "graph.h"
#include "stream.h"

// If the stream captures, adds the node and sets *captured. nc_lock held.
cu_result nc_capture_node(struct nc_stream *stream, const struct nc_work *work, bool *captured);

// Finds the stream, captures the work if it captures. The start of every
// function that submits work; *captured false means: do it now. Takes nc_lock.
cu_result nc_capture_submit(void *stream, const struct nc_work *work, bool *captured);

// The stream waits for the event: the wait joins a capturing stream when the
// event was recorded in one. nc_lock held.
cu_result nc_capture_wait(struct nc_stream *stream, struct nc_event *event);

// The stream goes away; its unfinished graph goes too. nc_lock held.
void nc_capture_abandon(struct nc_stream *stream);

#endif
