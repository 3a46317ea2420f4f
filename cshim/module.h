/* Loaded object files, discovered at the first code address inside them, without the loader's lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct link_map;

/* Writes the module that holds pc into the dictionary unless it is there already. */
void mt_module_note(uintptr_t pc);

/* Forgets what was noted, for a fresh spool. */
void mt_module_start(void);

/* The loader's record of the object that holds pc, or NULL (also where the C library cannot tell without a lock). */
struct link_map *mt_module_find(uintptr_t pc);
