/* Loaded object files, discovered at the first code address inside them, without the loader's lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct link_map;

/* Calls on_discovery with each object at the first code address inside it. At most MT_MODULE_LISTENERS, registered at
 * load; called in that order. */
#define MT_MODULE_LISTENERS 4u
void mt_module_on_discovery(void (*on_discovery)(const struct link_map *map));

/* Writes the module that holds pc into the dictionary unless it is there already. */
void mt_module_record(uintptr_t pc);

/* Clears the table, for a fresh spool. */
void mt_module_start(void);

/* Changes whenever modules are dropped: a cached code address may belong to another module by now. */
extern uint32_t mt_module_generation;

/* Drops the modules that were unloaded: another one may be mapped at the same address. Returns how many there were. */
unsigned mt_module_drop_unloaded(void);

/* True if pc lies in a copy of CUDA's runtime or driver library. */
bool mt_module_is_cuda(uintptr_t pc);

/* The loader's link_map of the object that holds pc, or NULL (also where the C library cannot find it without a lock).
 */
struct link_map *mt_module_find(uintptr_t pc);

/* True if the object is linked to the name: one of its relocations is for it. */
bool mt_module_imports(const struct link_map *map, const char *name);
