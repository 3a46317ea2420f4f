/* Names that only the file of a loaded object has: functions and variables that it does not export. Found by reading
 * the file, so never on a hot path. */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* A wanted symbol. */
struct mt_filesymbol {
  const char *name; /* mangled; with a * at its end every name that goes on, but not with a dot: compilers name the
                       pieces of a divided function so */
  uintptr_t value;  /* distance from the object's base; of the last one found */
  uint64_t size;
  unsigned found; /* how many have the name */
};

/* Looks the wanted names up in the file at path. False if it cannot be read or is stripped of its symbol table. */
bool mt_filesymbol_find(const char *path, struct mt_filesymbol *wanted, unsigned count);
