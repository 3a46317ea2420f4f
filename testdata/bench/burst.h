/* Bursts of framework events, reported as PyTorch's allocator does, and what each costs its thread. */
#pragma once

#include <stdint.h>

#define BURST_FLAT (-1)

struct burst {
  uint32_t events;  /* allocations, and as many frees */
  uint32_t thread;  /* a number that tells its blocks from those of others */
  int32_t levels;   /* frames added below every report, besides a few fixed ones; BURST_FLAT: none of either */
  uint32_t touched; /* bytes written before each event, which takes the caches; 0: events follow each other at once */
  uint32_t random;  /* not 0: the stacks come in an order that cannot be foreseen, instead of always the same one */
  double alloc_ns, free_ns; /* results: the mean of the burst */
};

/* Runs one burst and fills in its results. Consecutive events come from eight different stacks, which part in their
 * innermost three frames. */
void burst_run(struct burst *burst);

/* The levels with which a report in the calling function's burst_run has that many frames on its stack. */
int32_t burst_levels_for(unsigned frames);

/* The time stamp counter's ticks in a nanosecond. Measures for 20 ms at the first call, which must return before other
 * threads call. */
double burst_ticks_per_ns(void);
