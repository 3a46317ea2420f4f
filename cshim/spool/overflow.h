/* Back-pressure: a thread whose record finds no free slot in the spool waits until the drainer has freed segments,
 * unless MEMTRACE_OVERFLOW=drop.
 *
 * The wait is bounded: 50 ms for one record, and a twentieth of the run's time for all threads together (time in which
 * several wait counts once). Some threads never wait: where there is no drainer; inside a free whose number the drainer
 * waits for; in a signal handler, since the code that it interrupted may hold any lock. */
#pragma once

#include "base/thread.h"

struct mt_overflow {
  uint64_t give_up; /* CLOCK_MONOTONIC, ns */
  uint32_t seen;    /* of the header's room, before the last try */
};

/* Begins to wait: retry, then sleep, until one of the two succeeds or ends it; then call end. False if the thread must
 * not wait; then none of the others is called. */
bool mt_overflow_begin(struct mt_overflow *wait, struct mt_thread *self);

/* Sleeps until segments were freed. False when the time is over. */
bool mt_overflow_sleep(struct mt_overflow *wait);

void mt_overflow_end(void);
