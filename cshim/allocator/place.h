/* Where a block of torch's allocator belongs: the stream that it was allocated for, and the private pool, of a graph or
 * of a MemPool, that it came out of. A program that never leaves the default stream and makes no pool pays for one
 * load. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What was seen of the calling thread's allocation since the last report. A thread has it before its first event. */
struct mt_place {
  uint64_t pool;   /* 0 none; see mt_place_pool */
  uint64_t stream; /* 1 + the handle that was passed to the allocator; 0: the thread's current one */
};
extern __thread struct mt_place mt_place __attribute__((tls_model("initial-exec")));

/* Blocks may belong elsewhere than to the default stream and the common pool. Set once. */
extern uint32_t mt_place_tracking __attribute__((visibility("hidden"))); /* otherwise accessed by the global offset
                                                                            table */

static inline void mt_place_begin(void) {
  if (!__atomic_load_n(&mt_place_tracking, __ATOMIC_RELAXED)) __atomic_store_n(&mt_place_tracking, 1, __ATOMIC_RELAXED);
}

/* torch's name of a pool is a pair of which one part is 0: (n, 0) becomes 2 n, (0, n) becomes 2 n + 1. */
static inline uint64_t mt_place_pool(uint64_t first, uint64_t second) {
  return first ? 2 * first : second ? 2 * second + 1 : 0;
}

/* Finds the functions that return the current stream. False if this version does not export them. */
bool mt_place_find(void);

/* The dictionary id of the place of the block that the calling thread reports now, 0 for the default stream and no
 * pool. Resets the thread's mt_place. */
uint32_t mt_place_intern(int device);
