/* Samples of what the device reports, taken by the library's own thread, never on a path of the program's. */
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

/* Asks for a sample soon. Async-signal-safe, lock-free; a system call only if the sampler sleeps. */
void mt_sample_wake(enum mt_occasion occasion);

/* On a thread of the program's, before the sampler is started: has exit() wait for what that is at, and for its last sample. */
void mt_sample_prepare(void);

/* The sampler: returns when *until is not 0 and mt_sample_wake was called after that. Runs on a thread of ours with all signals blocked, on the program's own
 * descriptors: the management library is shared with the program, and so must be what it has open. */
void mt_sample_run(const uint32_t *until);

/* Notes in the trace that nobody samples, and why. */
void mt_sample_off(const char *why);

/* The program ends: one last sample, then none. Waits for it, but not for long. May be called more than once, by any thread, in a signal handler, and in
 * processes without a sampler, where it does nothing. */
void mt_sample_end(void);
