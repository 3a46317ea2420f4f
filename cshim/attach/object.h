/* Segments of a loaded object, by its program headers. */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct mt_range {
  uintptr_t start, end;
};

/* Whether one of the object's segments holds the address. */
bool mt_object_holds(const struct dl_phdr_info *object, uintptr_t address);

/* The whole pages of PT_GNU_RELRO, which the loader made read-only after relocation; empty if there are none. */
struct mt_range mt_object_relro(const struct dl_phdr_info *object);
