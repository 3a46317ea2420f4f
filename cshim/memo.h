/* Native stacks remembered with the places of their words on the thread's stack. A walk has to wait for each frame before it knows where the next one lies; a
 * stack that is expected is found again by comparing words that do not wait for each other. The comparison is exact: the same words at all places that a walk
 * reads lead a walk through the same frames. */
#pragma once

#include <stdint.h>

#include "expected.h"
#include "unwind.h"

/* What a walk read, from the hook's frame on. */
struct mt_memo {
  struct mt_expected head; /* its generation is mt_unwind_generation */
  uint16_t count;          /* words */
  uint16_t extent;         /* words of the thread's stack, from the frame's own on, that they lie in */
  uint64_t words[];        /* count values, then count 16-bit places */
};

/* A place is counted in words from the frame's own; values marked so are addresses of this very stack, and stand relative to the frame. */
#define MT_MEMO_RELATIVE 0x8000u

/* So many words are compared before the next decision. */
#define MT_MEMO_AT_ONCE 8u

extern struct mt_memory mt_memos; /* by what is known before a walk */

/* True if the memo is what lies above the frame. */
static inline __attribute__((no_sanitize("address", "thread"))) bool mt_memo_holds(const struct mt_memo *memo, const struct mt_frame *frame, uintptr_t top) {
  const uint64_t *base = (const uint64_t *)frame;
  if (memo->head.generation != __atomic_load_n(&mt_unwind_generation, __ATOMIC_RELAXED) || (top - (uintptr_t)frame) / 8 < memo->extent) return false;
  const unsigned count = memo->count;
  const uint16_t *places = (const uint16_t *)(memo->words + count);
  for (unsigned i = 0; i < count;) {
    uint64_t wrong = 0;
    for (unsigned end = count - i < MT_MEMO_AT_ONCE ? count : i + MT_MEMO_AT_ONCE; i < end; i++) {
      uint64_t relative = places[i] & MT_MEMO_RELATIVE ? (uint64_t)base : 0;
      wrong |= (base[places[i] & ~MT_MEMO_RELATIVE] - relative) ^ memo->words[i];
    }
    if (wrong) return false; /* most of the wrong ones differ near the hook */
  }
  return true;
}

/* The expected memo that is what lies above the frame, or NULL. */
static inline struct mt_expected *mt_memo_find(const struct mt_expected *before, uint64_t key, const struct mt_frame *frame, uintptr_t top) {
  struct mt_expected *memo = before ? __atomic_load_n(&before->next, __ATOMIC_ACQUIRE) : NULL;
  if (memo && mt_memo_holds((const void *)memo, frame, top)) return memo;
  const struct mt_expected_pair *pair = mt_memory_pair(&mt_memos, key);
  memo = __atomic_load_n(&pair->last, __ATOMIC_ACQUIRE);
  if (memo && mt_memo_holds((const void *)memo, frame, top)) return memo;
  memo = __atomic_load_n(&pair->before, __ATOMIC_ACQUIRE);
  return memo && mt_memo_holds((const void *)memo, frame, top) ? memo : NULL;
}

/* Expects the stack that was just walked, count addresses with the given id, the next time that the key comes. */
struct mt_expected *mt_memo_keep(uint64_t key, const struct mt_frame *frame, uintptr_t top, const uint64_t *addresses, unsigned count, uint32_t id);

/* Nothing is remembered any more: ids are of another spool. Returns 0, or -1 when memory is refused. */
int mt_memo_start(void);
