/* Look-up in an object's exported symbols by its own hash tables (DT_GNU_HASH, DT_HASH): dlsym may wait for the
 * loader's lock, and this does not. */
#pragma once

#include <link.h>
#include <stdint.h>

/* Base address and dynamic section of a loaded object. */
struct mt_loaded {
  uintptr_t base;
  const ElfW(Dyn) *dynamic;
};

/* Address of a function or variable that the object defines and exports, or 0. Names with versions are found under
 * whichever version comes first. */
uintptr_t mt_symbol_find(const struct mt_loaded *object, const char *name);

/* The first loaded object whose file has this name, without its folder; one without anything if there is none. Waits
 * for the loader's lock. */
struct mt_loaded mt_symbol_object(const char *file);
