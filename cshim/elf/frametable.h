/* The unwind information that compilers leave in every object (.eh_frame with its sorted .eh_frame_hdr): address -> the
 * entry of its function. Read where the loader mapped it; whatever a damaged table says, nothing outside of the given
 * range is read. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "elf/cursor.h"

struct mt_frame_table {
  const uint8_t *header; /* .eh_frame_hdr */
  const uint8_t *start, *end; /* readable memory that holds all of the table */
};

/* One function's entry (FDE) with what it shares with others (CIE). */
struct mt_frame_entry {
  uintptr_t start, end; /* code that it describes */
  struct mt_cursor shared, own; /* its programs: the one shared with others runs first */
  uint64_t code_unit;
  int64_t data_unit;
  uint8_t encoding;       /* of pointers */
  uint8_t return_register;
  bool signal; /* the kernel calls this code: its caller was interrupted, and did not make a call */
};

/* Finds the entry of the function that holds the address. False if there is none, or the table is missing, damaged or
 * written in a way that no linker uses. */
bool mt_frame_entry_find(const struct mt_frame_table *table, uintptr_t pc, struct mt_frame_entry *entry);

/* Reads a pointer as .eh_frame writes them; sets torn for encodings that no assembler uses. Also serves the programs,
 * which may set their location so. */
uintptr_t mt_frame_pointer(struct mt_cursor *c, uint8_t encoding);
