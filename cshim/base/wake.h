/* How rooms wake the threads of ours, which live above them: the one that takes turns, and the sampler. */
#pragma once

#include <stdint.h>

enum mt_occasion {
  MT_OCCASION_CONTEXT, /* a context came to be */
  MT_OCCASION_PERIOD,
  MT_OCCASION_PEAK, /* more is in use than at any sample before */
  MT_OCCASION_OOM,  /* an allocation was refused */
  MT_OCCASION_EXIT,
  MT_OCCASION_NONE, /* only wakes the sampler */
};

extern uint32_t mt_sampler_wanted; /* futex: 1 << enum mt_occasion */
extern uint32_t mt_sampler_sleeping;

/* Asks for a sample soon. Async-signal-safe, lock-free; a system call only if the sampler sleeps. */
void mt_wake_sampler(enum mt_occasion occasion);

extern uint32_t mt_turns; /* futex: how many were asked for */

/* Asks for a turn now, not at the next second. Any thread; keeps errno. */
void mt_wake_turn(void);
