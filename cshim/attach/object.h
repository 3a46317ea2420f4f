/* What the loader's list says of an object. */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct mt_range {
  uintptr_t start, end;
};

/* Whether one of the object's segments holds the address. */
bool mt_object_holds(const struct dl_phdr_info *object, uintptr_t address);

/* The whole pages that the loader made read-only after its own relocations; empty if there are none. */
struct mt_range mt_object_relro(const struct dl_phdr_info *object);
