/* What memory pools hold from the device: the part that no call shows. */
#pragma once

#include <stdint.h>

#include "base/thread.h"

/* Clears what a forked process inherited. When recording starts. */
void mt_reserve_start(void);

/* After a stream-ordered allocation: queries the pool (0: the device's current one) for its size, if it may have grown
 * since the last query. */
void mt_reserve_grown(struct mt_thread *self, uint16_t api, uintptr_t caller, int device, uint64_t pool, uint64_t size);

/* The device of a pool that was queried, else the given one. */
int mt_reserve_device(uint64_t pool, int otherwise);

/* After a launch: queries the current device for its graphs' memory. */
void mt_reserve_graph(struct mt_thread *self, uint16_t api, uintptr_t caller);

/* Queries the current pool and the graphs' memory of every device that has a context, and records changes. For the
 * sampler's thread. */
void mt_reserve_refresh_all(void);
