#define _GNU_SOURCE
#include "unwind/memo.h"

#include <stddef.h>
#include <string.h>

#include "base/config.h"
#include "unwind/rows.h"

#define MT_MEMO_WORDS (MT_NATIVE_MAX + 1) /* of each kind */

struct mt_memo_table mt_memos;

int mt_memo_start(void) { return mt_memo_table_start(&mt_memos); }

struct words {
  uint64_t values[MT_MEMO_WORDS];
  uint16_t places[MT_MEMO_WORDS];
  unsigned count;
};

/* What a walk reads, as it is collected. */
struct reading {
  const uint64_t *base;
  struct words plain, relative;
  unsigned extent;
};

static bool add(struct reading *r, uintptr_t address, bool relative) {
  uint64_t place = (address - (uintptr_t)r->base) / 8;
  struct words *words = relative ? &r->relative : &r->plain;
  if (place >= UINT16_MAX || words->count == MT_MEMO_WORDS) return false;
  words->values[words->count] = relative ? r->base[place] - (uint64_t)r->base : r->base[place];
  words->places[words->count++] = (uint16_t)place;
  if (place >= r->extent) r->extent = (unsigned)place + 1;
  return true;
}

/* Both walk once more, and note all words that decide where the walk goes. False if it leads to other addresses than
 * the given ones, or depends on more than such words. */
#if defined(__aarch64__)

/* The chain of frame pointers, and whether another address follows the last one. */
static bool read_stack(struct reading *r, const struct mt_frame *frame, uintptr_t top, const uint64_t *addresses,
                       unsigned count) {
  const uintptr_t caller = offsetof(struct mt_frame, caller);
  uintptr_t at = (uintptr_t)frame;
  for (unsigned i = 0; i < count; i++) {
    uintptr_t next = ((const struct mt_frame *)at)->bp;
    if (!add(r, at + caller, false)) return false;
    if (!mt_config.whole_stacks && mt_rows_stops(addresses[i] - 1)) return i + 1 == count;
    if (!add(r, at, next != 0)) return false;
    if (!next) return i + 1 == count;
    if (next <= at || next > top - sizeof *frame || next % 8) return false;
    at = next;
  }
  return add(r, at + caller, false) && (count == mt_config.native_depth || !((const struct mt_frame *)at)->caller);
}

#else

/* Return addresses, and frame pointers where a frame is found by one. Rows of odd kinds depend on more. */
static bool read_stack(struct reading *r, const struct mt_frame *frame, uintptr_t top, const uint64_t *addresses,
                       unsigned count) {
  uintptr_t pc = frame->caller, sp = (uintptr_t)(frame + 1), bp = frame->bp, bp_at = (uintptr_t)&frame->bp;
  if (!add(r, (uintptr_t)&frame->caller, false)) return false;
  for (unsigned i = 0;; i++) {
    if (i == count) return pc == 0 || count == mt_config.native_depth;
    if (pc != addresses[i] || pc - 1 >= MT_CODE_END - 1) return false;
    uint32_t row = mt_rows_get(pc);
    if (row & MT_ROW_STOP && !mt_config.whole_stacks) return i + 1 == count;
    uintptr_t cfa;
    if ((row & MT_ROW_WORD) == MT_ROW_FROM_SP) cfa = sp + (row & MT_ROW_CFA);
    else if ((row & MT_ROW_WORD) == MT_ROW_FROM_BP) {
      cfa = bp + (row & MT_ROW_CFA);
      if (!add(r, bp_at, true)) return false;
    } else
      return i + 1 == count && MT_ROW_INDEXED_KIND(row) == MT_ROW_OUTERMOST;
    if (cfa < sp + 8 || cfa > top || cfa % 8 || cfa - MT_ROW_BP(row) < sp) return false;
    if (MT_ROW_BP(row)) {
      bp_at = cfa - MT_ROW_BP(row);
      bp = *(const uintptr_t *)bp_at;
    }
    pc = *(const uintptr_t *)(cfa - 8);
    sp = cfa;
    if (!add(r, cfa - 8, false)) return false;
  }
}

#endif

static struct mt_memo *make(const struct reading *r, uint32_t id, uint32_t generation) {
  const struct words *a = &r->plain, *b = &r->relative;
  unsigned count = a->count + b->count;
  struct mt_memo *memo =
      mt_memo_table_alloc(&mt_memos, sizeof *memo + count * (sizeof *a->values + sizeof *a->places), id, generation);
  if (!memo) return NULL;
  uint16_t *places = (uint16_t *)(memo->words + count);
  memo->count = (uint16_t)count;
  memo->plain = (uint16_t)a->count;
  memo->extent = (uint16_t)r->extent;
  memcpy(memo->words, a->values, a->count * sizeof *a->values);
  memcpy(memo->words + a->count, b->values, b->count * sizeof *b->values);
  memcpy(places, a->places, a->count * sizeof *a->places);
  memcpy(places + a->count, b->places, b->count * sizeof *b->places);
  return memo;
}

struct here {
  const struct mt_frame *frame;
  uintptr_t top;
};

static bool matches(const struct mt_stack_memo *memo, const void *now) {
  const struct here *here = now;
  return mt_memo_matches((const void *)memo, here->frame, here->top);
}

/* Apart from its caller: its 5 KiB of stack are not needed where the memo is there already. */
static __attribute__((noinline)) struct mt_memo *read_and_make(const struct mt_frame *frame, uintptr_t top,
                                                               const uint64_t *addresses, unsigned count, uint32_t id,
                                                               uint32_t generation) {
  struct reading reading;
  reading.base = (const uint64_t *)frame;
  reading.plain.count = reading.relative.count = reading.extent = 0;
  return read_stack(&reading, frame, top, addresses, count) ? make(&reading, id, generation) : NULL;
}

struct mt_stack_memo *mt_memo_insert(uint64_t key, const struct mt_frame *frame, uintptr_t top,
                                     const uint64_t *addresses, unsigned count, uint32_t id) {
  struct mt_stack_memo **place;
  uint32_t generation = __atomic_load_n(&mt_unwind_generation,
                                        __ATOMIC_ACQUIRE); /* rows that are read from here on are at least as new */
  struct mt_memo *memo = (void *)mt_memo_table_find(&mt_memos, top - (uintptr_t)frame, id, generation, matches,
                                                    &(struct here){frame, top}, &place);
  if (!memo) {
    if (!place || !(memo = read_and_make(frame, top, addresses, count, id, generation))) return NULL;
    __atomic_store_n(place, &memo->head, __ATOMIC_RELEASE);
  }
  mt_memo_table_predict(&mt_memos, key, &memo->head);
  return &memo->head;
}
