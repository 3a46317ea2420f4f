/* Predicts a thread's next stack from the one before: memoized stacks are verified by comparing words, whose loads do
 * not depend on each other as those of a walk do. One table for native stacks (memo.h) and one for Python's (pymemo.h).
 * Lock-free; never read while it is being rebuilt. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/table.h"

/* What every memo begins with. Only next changes once it is published. */
struct mt_stack_memo {
  struct mt_stack_memo *next; /* what came last after this one, in any thread, or NULL */
  uint32_t id;              /* of the stack, in the dictionary */
  uint32_t generation;      /* of whatever makes memos void */
};

/* The two latest memos for a key. */
struct mt_stack_memo_pair {
  struct mt_stack_memo *last, *before;
};

#define MT_STACK_MEMO_BITS 12
#define MT_STACK_MEMO_PREFETCH 6 /* lines: of most memos all */

struct mt_memo_table {
  struct mt_stack_memo_pair *pairs; /* by key; NULL: nothing can be remembered */
  struct mt_memo_storage *storage;
  struct mt_table table; /* where they are */
};

/* Clears the table. Returns 0, or -1 when the system refuses the memory: then nothing is predicted. */
int mt_memo_table_start(struct mt_memo_table *memory);

static inline struct mt_stack_memo_pair *mt_memo_table_pair(const struct mt_memo_table *memory, uint64_t key) {
  return &memory->pairs[key * 0x9E3779B97F4A7C15ull >> (64 - MT_STACK_MEMO_BITS)];
}

/* Predicts the memo for the next time that the key comes. */
void mt_memo_table_predict(struct mt_memo_table *memory, uint64_t key, struct mt_stack_memo *memo);

/* Prefetches the cache lines of the memo that followed the last time. A prediction is only a guess: correctness must
 * not depend on it. */
static inline void mt_memo_table_prefetch(const struct mt_stack_memo *last) {
  const char *next = last ? (const char *)__atomic_load_n(&last->next, __ATOMIC_RELAXED) : NULL;
  if (next)
    for (unsigned i = 0; i < MT_STACK_MEMO_PREFETCH; i++) __builtin_prefetch(next + 64 * i);
}

/* Chains memo after *last, which becomes memo. */
static inline void mt_memo_table_chain(struct mt_stack_memo **last, struct mt_stack_memo *memo) {
  if (*last && __atomic_load_n(&(*last)->next, __ATOMIC_RELAXED) != memo)
    __atomic_store_n(&(*last)->next, memo, __ATOMIC_RELEASE);
  *last = memo;
}

/* The memo of what is there now, which then holds, whatever key led to it: NULL if there is none; *place is then where
 * it may be put, NULL if there is no room. hash is of what is there. Memos of other generations give way. */
typedef bool mt_memo_test(const struct mt_stack_memo *memo, const void *now);
struct mt_stack_memo *mt_memo_table_find(struct mt_memo_table *memory, uint64_t hash, uint32_t id, uint32_t generation,
                                         mt_memo_test *holds, const void *now, struct mt_stack_memo ***place);

/* Room for a memo of that many bytes, with its head filled in, or NULL. */
void *mt_memo_table_alloc(struct mt_memo_table *memory, size_t size, uint32_t id, uint32_t generation);
