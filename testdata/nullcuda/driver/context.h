// Contexts, and the stack of current contexts that each thread has.
#ifndef NULLCUDA_CONTEXT_H
#define NULLCUDA_CONTEXT_H

#include "driver.h"

enum { NC_LIMITS = 11 };

struct nc_context {
	struct nc_context *next; // all contexts ever made: a stale handle must be told from a live one
	int device;
	bool live;
	bool primary;
	unsigned references; // primary: retains not yet released; others: creation and attaches not yet detached
	struct nc_context *base; // a green context's: the primary one, which does and owns everything; else NULL
	unsigned flags;
	unsigned api_version;
	int cache_config, shared_config;
	size_t limits[NC_LIMITS];
	uint64_t id;
	unsigned peers; // bit per device whose memory this context may access
	struct nc_stream *default_streams[2]; // legacy and per-thread, made on demand
};

// The calling thread's current context: CU_NOT_INITIALIZED, CU_INVALID_CONTEXT
// when there is none, CU_CONTEXT_IS_DESTROYED when it is gone. Needs no lock.
cu_result nc_context_current(struct nc_context **context);

// NULL stands for the current context. nc_lock held.
cu_result nc_context_from_handle(void *handle, struct nc_context **context);

// One more, and one less, user of the device's primary context, which is made with the
// first and torn down with the last. nc_lock held.
cu_result nc_context_retain_primary(int device, struct nc_context **context);
cu_result nc_context_release_primary(int device);

// A context that stands for the primary one of its device. It is never freed: ended, it
// answers as a destroyed one. NULL when out of host memory. nc_lock held.
struct nc_context *nc_context_new_green(struct nc_context *primary);
void nc_context_end_green(struct nc_context *context);

// Runs at every synchronising call: pools give back what they keep above their
// release thresholds. nc_lock held.
void nc_context_synchronize(int device);

#define NC_CURRENT(name)          \
	struct nc_context *name;  \
	NC_TRY(nc_context_current(&name))

#endif
