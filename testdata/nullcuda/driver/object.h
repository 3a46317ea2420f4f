// Handles that the driver gives out: contexts, streams, events, modules, ...
// A handle is the address of an object; it is valid while the object is in the
// one table kept here.
#ifndef NULLCUDA_OBJECT_H
#define NULLCUDA_OBJECT_H

#include "driver.h"

enum nc_object_type {
	NC_STREAM,
	NC_EVENT,
	NC_MODULE_OBJECT,
	NC_FUNCTION,
	NC_LIBRARY,
	NC_KERNEL,
	NC_ARRAY_OBJECT,
	NC_MIPMAP,
	NC_POOL_OBJECT,
	NC_VMM_HANDLE,
	NC_GRAPH,
	NC_NODE,
	NC_EXEC,
	NC_LINK,
	NC_TEXTURE,
	NC_USER_OBJECT,
	NC_EXTERNAL,
	NC_GREEN,
	NC_DESCRIPTOR,
	NC_OBJECT_TYPES,
};

struct nc_context;

// First member of every object.
struct nc_object {
	struct nc_object *next; // in its hash bucket
	enum nc_object_type type;
	struct nc_context *owner; // destroyed with this context; NULL: owned by the process
};

// Allocates a zeroed object of `size` bytes and enters it. NULL when out of
// host memory. nc_lock held, as for all functions here.
void *nc_object_new(enum nc_object_type type, size_t size, struct nc_context *owner);

// The object with this handle if it is live and of this type, else NULL.
void *nc_object_find(const void *handle, enum nc_object_type type);

// Takes the object out, making its handle invalid, but leaves it allocated for
// whoever still holds it; nc_object_add makes the handle valid again.
void nc_object_remove(void *object);
void nc_object_add(void *object);

// Takes the object out and frees it.
void nc_object_delete(void *object);

// Calls `destroy` on every object of the type that the context owns. `destroy`
// must delete the object it is given, and may delete others.
void nc_object_sweep(struct nc_context *owner, enum nc_object_type type, void (*destroy)(void *object));

// Calls `visit` on every object of the type. `visit` must not add or delete.
void nc_object_each(enum nc_object_type type, void (*visit)(void *object, void *argument), void *argument);

#endif
