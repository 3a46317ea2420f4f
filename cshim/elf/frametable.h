/* Call frame information (.eh_frame with the binary search table of .eh_frame_hdr): address -> FDE of its function. See
 * DWARF 5, 6.4, and LSB Core 5.0, "Exception Frames". Read where the loader mapped it; a damaged table never leads to a
 * read outside of the given range. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "elf/cursor.h"

struct mt_frame_table {
  const uint8_t *header; /* .eh_frame_hdr */
  const uint8_t *start, *end; /* readable memory that holds all of the table */
};

/* A frame description entry (FDE) with its common information entry (CIE). */
struct mt_frame_entry {
  uintptr_t start, end; /* code that it describes */
  struct mt_cursor cie_program, fde_program; /* call frame instructions: the CIE's run first */
  uint64_t code_alignment;
  int64_t data_alignment;
  uint8_t encoding;       /* of pointers */
  uint8_t return_address_register;
  bool signal; /* the kernel calls this code: its caller was interrupted, and did not make a call */
};

/* Finds the FDE of the function that holds the address. False if there is none, or the table is missing, damaged or in
 * an encoding that no linker uses. */
bool mt_frame_entry_find(const struct mt_frame_table *table, uintptr_t pc, struct mt_frame_entry *entry);

/* Reads a pointer in a DW_EH_PE_ encoding; sets torn for encodings that no assembler uses. Also for the operand of
 * DW_CFA_set_loc. */
uintptr_t mt_eh_pointer_read(struct mt_cursor *c, uint8_t encoding);
