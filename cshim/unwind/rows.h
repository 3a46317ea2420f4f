/* Return address -> how to step to the caller: a cache for all threads, without locks.
 *
 * A slot is one word, so that it is read and replaced whole:
 *
 *   63              25 24        16 15         3 2    1 0
 *   +-----------------+------------+------------+------+------+
 *   | of the address  | bp / 8     | CFA / 8    | stop | kind |
 *   +-----------------+------------+------------+------+------+
 *
 * kind 1: CFA = sp + CFA; kind 2: CFA = bp + CFA; in both the return address lies under the CFA and the caller's bp at
 * CFA - bp, or still in the register if that is 0. kind 3: all others, with the index of a struct mt_unwind_row in the
 * place of the CFA and its kind in the place of bp. 0: empty. stop: the code of an interpreter's loop.
 *
 * Eight slots are a cache line, and an address may lie in any slot of its line. The line is chosen by its bits from 3
 * on mixed with those from 11 on; the slot keeps all bits but 3-10, which follow from the line.
 *
 * There are two tables of that form. Every step reads the small one: a training step has some hundred return
 * addresses, and between two events the program uses the processor's caches for its own data. The large one holds all
 * addresses so far. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "unwind/unwindrow.h"

#define MT_ROWS 2048u
#define MT_ROWS_LINE 8u
#define MT_ROW_BITS 25
#define MT_ROW_STOP 4u
#define MT_ROW_CFA 0xfff8u
#define MT_ROW_BP(row) ((row) >> 16 << 3 & 0xff8u)
#define MT_ROW_INDEX(row) ((row) >> 3 & 0x1fffu)
#define MT_ROW_INDEXED_KIND(row) ((row) >> 16 & 0x1ffu)

/* No code lies above: the upper half of the address space is the kernel's. */
#define MT_CODE_END (1ull << 47)

enum mt_row_word { MT_ROW_EMPTY = 0, MT_ROW_FROM_SP = 1, MT_ROW_FROM_BP = 2, MT_ROW_INDEXED = 3, MT_ROW_WORD = 3 };

extern uint64_t mt_rows[MT_ROWS];

/* The slow path of a step: searches the line, then the large table, then computes. Never 0. */
uint32_t mt_rows_find(uintptr_t pc);

/* The row of an instruction that was interrupted, not of a return address: not cached. */
uint32_t mt_rows_exact(uintptr_t pc);

/* The row of a word of kind MT_ROW_INDEXED. Never freed. */
const struct mt_unwind_row *mt_rows_indexed(uint32_t row);

/* Adds to the code that is marked by MT_ROW_STOP; 0, 0 takes all marks away. At most eight ranges. */
void mt_rows_stop_at(uintptr_t start, uintptr_t end);

/* True for code inside of these ranges. */
bool mt_rows_stops(uintptr_t pc);

void mt_rows_invalidate(void);

static inline uint32_t mt_rows_hash(uintptr_t pc) { return (uint32_t)(pc ^ pc >> 8); }

static inline uint64_t mt_rows_word(uintptr_t pc, uint32_t row) {
  return (pc >> 11 << 3 | (pc & 7)) << MT_ROW_BITS | row;
}

/* Of the return address pc, 0 < pc < MT_CODE_END. */
static inline uint32_t mt_rows_get(uintptr_t pc) {
  uint64_t word = __atomic_load_n(&mt_rows[mt_rows_hash(pc) % MT_ROWS], __ATOMIC_ACQUIRE) ^ mt_rows_word(pc, 0);
  return __builtin_expect(word - 1 < (1u << MT_ROW_BITS) - 1, 1) ? (uint32_t)word : mt_rows_find(pc);
}
