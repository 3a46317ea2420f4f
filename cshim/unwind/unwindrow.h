/* A row of the call frame information table (DWARF 5, 6.4.1), for one address: the rules of the CFA, the frame pointer
 * and the return address. Other registers are left out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "elf/frametable.h"

/* What a value is computed from. CFA: canonical frame address, the stack pointer's value in the caller. */
enum mt_base { MT_BASE_NONE = 0, MT_BASE_SP, MT_BASE_BP, MT_BASE_CFA };

/* base + inner, or the word at that address; then + add. */
struct mt_value {
  uint8_t base; /* enum mt_base */
  bool load;
  uint16_t pad; /* without gaps, rows compare as bytes */
  int32_t inner;
  int32_t add;
};

enum mt_row_kind {
  MT_ROW_STEP = 1,
  MT_ROW_REALIGNED, /* the CFA is in a register that is not kept, but above its frame pointer the function holds a copy
                       of its return address */
  MT_ROW_OUTERMOST, /* this function has no caller */
  MT_ROW_NONE, /* no unwind information */
  MT_ROW_UNSUPPORTED, /* a rule that is not followed */
};

struct mt_unwind_row {
  uint8_t kind; /* enum mt_row_kind */
  bool signal;  /* the caller was interrupted: its address is exact, and it may run on another stack */
  uint16_t pad;
  struct mt_value cfa, bp, caller;
};

/* Runs the call frame instructions up to pc, an address inside of the call instruction, or the one interrupted. Bounded
 * for any input. */
struct mt_unwind_row mt_unwind_row(const struct mt_frame_entry *entry, uintptr_t pc);
