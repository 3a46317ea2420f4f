// Streams and events. Work is done when it is submitted, so a stream orders
// nothing and is never busy; events only carry the time of their record.
#ifndef NULLCUDA_STREAM_H
#define NULLCUDA_STREAM_H

#include "context.h"
#include "object.h"

// Handles that name a default stream of the current context.
#define NC_STREAM_LEGACY ((void *)1)
#define NC_STREAM_PER_THREAD ((void *)2)

struct nc_stream {
	struct nc_object object; // owner: the stream's context
	unsigned flags;
	int priority;
	uint64_t id;
	struct nc_green *green;   // of which it is a stream, or NULL
	bool detached;            // its green context is gone: it can only be destroyed
	struct nc_graph *capture; // records instead of running, NULL: runs
	bool capture_origin;          // the capture began here, so it must end here
	struct nc_node *capture_last; // what the next captured node depends on
	uint64_t capture_id;
};

struct nc_event {
	struct nc_object object; // owner: the event's context
	unsigned flags;
	bool recorded;
	int64_t time; // ns, CLOCK_MONOTONIC, of the last record
	struct nc_stream *capture_origin; // recorded while this stream was capturing
	struct nc_node *capture_node;
};

// A new stream of the context; priority is brought into the range there is. NULL when
// out of host memory. nc_lock held.
struct nc_stream *nc_stream_new(struct nc_context *context, unsigned flags, int priority);

// Every stream of the green context that is about to go. nc_lock held.
void nc_stream_detach(struct nc_green *green);

// NULL and the two reserved handles need a current context. nc_lock held.
cu_result nc_stream_from_handle(void *handle, struct nc_stream **stream);

// For functions that only need the stream to exist. Takes nc_lock.
cu_result nc_stream_check(void *handle);

// Ends the capture into the graph for every stream that takes part.
void nc_stream_forget_capture(struct nc_graph *graph);

void nc_stream_destroy(void *stream);
void nc_event_destroy(void *event);

#endif
