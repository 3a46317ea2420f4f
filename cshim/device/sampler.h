/* Samples of what the device reports, taken by the library's own thread, never on a path of the program's. */
#pragma once

#include <stdint.h>

#include "base/wake.h"

/* On a thread of the program's, before the sampler is started: registers an exit handler that waits for its last
 * sample. */
void mt_sampler_prepare(void);

/* The sampler: returns when *until is not 0 and mt_wake_sampler was called after that. Runs on a library thread with
 * all signals blocked, on the program's own descriptors: NVML is shared with the program, and so must be what it has
 * open. each_round is called at every round. */
void mt_sampler_run(const uint32_t *until, void (*each_round)(void));

/* Records that there are no samples, and why. */
void mt_sampler_disable(const char *why);

/* The program ends: one last sample, then none. Waits for it, but not for long. May be called more than once, by any
 * thread, in a signal handler, and in processes without a sampler, where it does nothing. */
void mt_sampler_end(void);
