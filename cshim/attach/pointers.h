/* Addresses of functions that libraries fetched before, as by dlsym, and keep in their variables. */
#pragma once

#include <stdint.h>

struct mt_pointer {
  uintptr_t original, replacement;
};

/* Replaces every aligned word that holds an original, in the writable data of all loaded objects but this library and
 * the originals' own. The list is sorted by original. Returns how many words there were. What lies elsewhere, as on the
 * heap, is not found. Waits for the loader. */
unsigned mt_pointers_replace(const struct mt_pointer *list, unsigned count);
