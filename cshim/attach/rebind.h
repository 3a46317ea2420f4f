/* Rebinds calls of loaded objects to this library's functions, as the loader would have bound them if the library had
 * been preloaded: by their global offset tables. Objects that are loaded later are rebound at the first dlsym
 * afterwards. */
#pragma once

#include <stdbool.h>

#include "elf/relocation.h"

/* Whether to rebind the word. original is its value: a function of another object, or the object's own lazy-binding
 * stub (PLT). */
typedef bool (*mt_rebind_choose)(const struct mt_relocation *word, void *original);

/* Rebinds everything that is loaded. False, and errno set, if the system does not let memory protection be changed.
 * Waits for the loader. */
bool mt_rebind_start(mt_rebind_choose choose);

/* Rebinds what was loaded since, where anything was ever rebound. Otherwise one load and a branch. Keeps errno. */
void mt_rebind_new(void);
