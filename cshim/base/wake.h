/* Wakes the library's own threads, which belong to rooms above: the one that polls, and the sampler. */
#pragma once

#include <stdint.h>

enum mt_occasion {
  MT_OCCASION_CONTEXT, /* a context was created */
  MT_OCCASION_PERIOD,
  MT_OCCASION_PEAK, /* more is in use than at any sample before */
  MT_OCCASION_OOM,  /* an allocation was refused */
  MT_OCCASION_EXIT,
  MT_OCCASION_NONE, /* only wakes the sampler */
};

extern uint32_t mt_sampler_wanted; /* futex: 1 << enum mt_occasion */
extern uint32_t mt_sampler_sleeping;

/* Requests a sample soon. Async-signal-safe, lock-free; a system call only if the sampler sleeps. */
void mt_wake_sampler(enum mt_occasion occasion);

extern uint32_t mt_poll_count; /* futex: polls requested so far */

/* Requests a poll now, not at the next second. Any thread; keeps errno. */
void mt_wake_poll(void);
