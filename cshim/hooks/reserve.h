/* What memory pools hold from the device: the part that no call shows. */
#pragma once

#include <stdint.h>

#include "base/thread.h"

/* Forgets what a forked process inherited. When recording starts. */
void mt_reserve_start(void);

/* After a stream-ordered allocation: asks the pool (0: the device's current one) what it holds, if it may have grown
 * since it was last asked. */
void mt_reserve_grown(struct mt_thread *self, uint16_t api, uintptr_t caller, int device, uint64_t pool, uint64_t size);

/* The device of a pool that has been asked, else what is given. */
int mt_reserve_device(uint64_t pool, int otherwise);

/* After a launch: asks the current device what its graphs hold. */
void mt_reserve_graph(struct mt_thread *self, uint16_t api, uintptr_t caller);

/* Asks every device that has a context about its current pool and its graphs, and records what changed. For the
 * sampler's thread. */
void mt_reserve_refresh_all(void);
