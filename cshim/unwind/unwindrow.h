/* How to step from a function to its caller, at one place of its code: what its unwind program says of the stack
 * pointer, the frame pointer and the return address. Of all other registers nothing is kept. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "elf/frametable.h"

/* What a value is reckoned from. The CFA is the value that the stack pointer has in the caller. */
enum mt_base { MT_BASE_NONE = 0, MT_BASE_SP, MT_BASE_BP, MT_BASE_CFA };

/* base + inner, or the word that lies there; then + add. */
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
  MT_ROW_OUTERMOST, /* nobody called this function */
  MT_ROW_NONE, /* no unwind information */
  MT_ROW_UNSUPPORTED, /* a rule that is not followed */
};

struct mt_unwind_row {
  uint8_t kind; /* enum mt_row_kind */
  bool signal;  /* the caller was interrupted: its address is exact, and it may run on another stack */
  uint16_t pad;
  struct mt_value cfa, bp, caller;
};

/* Runs the entry's program up to pc, an address inside of the instruction that calls, or the one interrupted. Bounded
 * whatever the program holds. */
struct mt_unwind_row mt_unwind_row(const struct mt_frame_entry *entry, uintptr_t pc);
