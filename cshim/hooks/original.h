/* Finds the original functions of the hooks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct link_map;

#define MT_SLOT_SCOPES 16u
#define MT_SLOT_CACHE 4u /* a power of two */

/* One hooked function's originals. A process may hold two CUDA runtimes: a caller's name resolves in its own library
 * scope, so originals are kept per calling object. Words are set once and cleared when a library is unloaded; no locks.
 */
struct mt_slot {
  void *fallback; /* from a route (dlsym, cuGetProcAddress), for callers in whose scope the name is undefined */
  struct {
    struct link_map *caller;
    void *real;
  } scope[MT_SLOT_SCOPES];
  struct {
    uintptr_t caller; /* a return address; 1 while the entry is filled */
    void *real;
  } cache[MT_SLOT_CACHE]; /* by return address, to spare the search for its object: first come, first kept */
  struct mt_slot *next; /* of all slots that hold something */
  uint32_t listed;
};

/* The original that the code at caller means by name, or NULL. */
void *mt_slot_find(struct mt_slot *slot, const char *name, uintptr_t caller);

/* Keeps an original that a route handed out; returns the one that is now the fallback. */
void *mt_slot_set_fallback(struct mt_slot *slot, void *real);

/* The code at caller looked the name up in its scope and got the wrapper: keeps the original that it would have found
 * there without this library, for its calls. False if there is none. */
bool mt_slot_bind_scope(struct mt_slot *slot, const char *name, uintptr_t caller);

/* Keeps an original that the object at caller called until now. */
void mt_slot_bind_object(struct mt_slot *slot, uintptr_t caller, void *real);

/* True if function is one of this library's wrappers. */
bool mt_original_is_wrapper(void *function);

/* What the name would resolve to for the code at caller without this library, or NULL. May wait for the loader. */
void *mt_original_find(const char *name, uintptr_t caller);

/* Drops what points into unloaded libraries, if any was unloaded since the last time. */
void mt_original_drop_unloaded(void);

/* Finds the next dlsym in the global scope; later calls cost one load. False on a C library without one. */
bool mt_original_dlsym_ready(void);

/* The library was not preloaded: callers reach a wrapper by rebinding. */
void mt_original_set_attached(void);

/* Another library's dlsym, which the program called until now, becomes the next in line. */
void mt_original_chain_dlsym(void *dlsym);

/* dlsym as the next library in line defines it. */
void *mt_original_dlsym(void *handle, const char *name);

/* A function of the loaded driver library, or NULL when no driver is loaded. May wait for the loader: never on a hot
 * path. */
void *mt_driver_symbol(const char *name);
