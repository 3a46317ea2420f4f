/* What scripts of ours can call: names and their memory into the ring. Internal to the adapters. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct mt_pysymbol {
  const char *name;
  void *place; /* of a pointer to the function or variable */
};

/* Looks up what the interpreter exports; false if something is missing. */
bool mt_pysymbols_find(const struct mt_pysymbol *symbols, size_t count);

bool mt_pyfunctions_find(void);

/* Puts the functions into a namespace. With the interpreter's lock; false leaves an exception. */
bool mt_pyfunctions_add(void *globals);

/* One more reference. */
void mt_pyfunctions_keep(void *object);
