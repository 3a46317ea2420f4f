/* The words of a loaded object that the loader fills with addresses of other objects: its global offset table, and
 * pointers in its data. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "elf/symbol.h"

struct mt_relocation {
  uintptr_t *word;  /* inside the object */
  const char *name; /* of the function or variable whose address it holds */
  bool table; /* a word of the offset table, which only the loader writes; else data, which the program may have changed
               */
};

/* Calls visit for every word that names a symbol, until it returns true. True if it did. */
bool mt_relocation_each(const struct mt_loaded *object,
                        bool (*visit)(const struct mt_relocation *relocation, void *context), void *context);
