/* Writes names of memory and of objects, which adapters pack, into the ring. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* As scripts pack it: struct.Struct("<QQQII"). */
struct mt_name_row {
  uint64_t address, size, object;
  uint32_t name, category; /* with MT_ELEMENT_SHIFT */
};
_Static_assert(sizeof(struct mt_name_row) == 32, "without gaps");

struct mt_thread;

/* Writes rows: the epoch that their names belong to in eight bytes, then one row after the other. places, if not NULL:
 * the rows' addresses as 64-bit numbers, in room bytes; rows without one, and those whose address is 0, are left out.
 * So are rows without a category, incomplete ones, and all of another epoch. Returns how many were written. */
size_t mt_name_rows(struct mt_thread *self, const char *rows, size_t size, const char *places, size_t room);
