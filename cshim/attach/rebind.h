/* Leads calls of loaded objects to the functions of this library, as the loader would have if it had been preloaded: by
 * the words of their offset tables. Objects that are loaded later still are rebound when they are first asked for
 * something, by dlsym. */
#pragma once

#include <stdbool.h>

#include "elf/relocation.h"

/* Says whether the word is to be changed. original is what it held: a function of another object, or code of the
 * object's own that has not looked it up yet. */
typedef bool (*mt_rebind_choose)(const struct mt_relocation *word, void *original);

/* Rebinds everything that is loaded. False, and errno set, if the system does not let memory protection be changed.
 * Waits for the loader. */
bool mt_rebind_start(mt_rebind_choose choose);

/* Rebinds what was loaded since, where anything was ever rebound. Otherwise one load and a branch. Keeps errno. */
void mt_rebind_new(void);
