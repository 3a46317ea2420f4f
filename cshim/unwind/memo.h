/* Memoized native stacks, with the offsets of the words that a walk reads. A walk's loads depend on each other; a
 * predicted stack is verified by comparing words, whose loads do not. The comparison is exact: equal words at all
 * places that a walk reads lead a walk through the same frames. */
#pragma once

#include <stdint.h>

#include "unwind/stackmemo.h"
#include "unwind/unwind.h"

/* What a walk read, from the hook's frame on. Its generation is mt_unwind_generation. */
struct mt_memo {
  struct mt_stack_memo head;
  uint16_t count; /* words, in the order of a walk: plain values, then addresses within this very stack, stored
                     relative to the frame */
  uint16_t plain;   /* how many plain values */
  uint16_t extent;  /* words of the thread's stack, from the frame's own on, that they lie in */
  uint64_t words[]; /* count values, then count 16-bit places, in words from the frame's own */
};

extern struct mt_memo_table mt_memos; /* by what is known before a walk */

/* So many words are compared before the next decision: most wrong ones differ near the hook. */
#define MT_MEMO_AT_ONCE 8u

static inline __attribute__((always_inline)) bool mt_memo_words_match(const uint64_t *base, const uint64_t *words,
                                                                      const uint16_t *places, unsigned count,
                                                                      uint64_t relative) {
  for (unsigned end; count; words += end, places += end, count -= end) {
    uint64_t wrong = 0;
    end = count < MT_MEMO_AT_ONCE ? count : MT_MEMO_AT_ONCE;
    for (unsigned i = 0; i < end; i++) wrong |= (base[places[i]] - relative) ^ words[i];
    if (wrong) return false;
  }
  return true;
}

/* True if the memo is what lies above the frame. */
static inline __attribute__((no_sanitize("address", "thread"))) bool
mt_memo_matches(const struct mt_memo *memo, const struct mt_frame *frame, uintptr_t top) {
  const uint64_t *base = (const uint64_t *)frame;
  if (memo->head.generation != __atomic_load_n(&mt_unwind_generation, __ATOMIC_RELAXED) ||
      (top - (uintptr_t)frame) / 8 < memo->extent)
    return false;
  const uint16_t *places = (const uint16_t *)(memo->words + memo->count);
  return mt_memo_words_match(base, memo->words, places, memo->plain, 0) &&
         mt_memo_words_match(base, memo->words + memo->plain, places + memo->plain, memo->count - memo->plain,
                             (uint64_t)base);
}

/* The expected memo that is what lies above the frame, or NULL. */
static inline struct mt_stack_memo *mt_memo_find(const struct mt_stack_memo *before, uint64_t key,
                                                 const struct mt_frame *frame, uintptr_t top) {
  struct mt_stack_memo *memo = before ? __atomic_load_n(&before->next, __ATOMIC_ACQUIRE) : NULL;
  if (memo && mt_memo_matches((const void *)memo, frame, top)) return memo;
  const struct mt_stack_memo_pair *pair = mt_memo_table_pair(&mt_memos, key);
  memo = __atomic_load_n(&pair->last, __ATOMIC_ACQUIRE);
  if (memo && mt_memo_matches((const void *)memo, frame, top)) return memo;
  memo = __atomic_load_n(&pair->before, __ATOMIC_ACQUIRE);
  return memo && mt_memo_matches((const void *)memo, frame, top) ? memo : NULL;
}

/* Predicts the stack that was just walked, count addresses with the given id, for the next time that the key comes. */
struct mt_stack_memo *mt_memo_insert(uint64_t key, const struct mt_frame *frame, uintptr_t top,
                                     const uint64_t *addresses, unsigned count, uint32_t id);

/* Clears the memos: ids are of another spool. Returns 0, or -1 when memory is refused. */
int mt_memo_start(void);
