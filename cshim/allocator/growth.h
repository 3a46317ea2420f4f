/* Whether the memory that PyTorch's allocator has handed out grew throughout the run, by its minima. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MT_GROWTH_DEVICES 16

/* The part of the run that goes on, by device. Reports of a device come one at a time where its allocator's lock is
 * held; where threads do race, a part is a few reports longer or shorter. */
extern struct mt_growth_part {
  uint64_t lowest, highest; /* in this part; in the whole run */
  uint64_t allocated; /* with the latest report */
  uint32_t left; /* reports until it ends */
} __attribute__((aligned(32))) mt_growth_parts[MT_GROWTH_DEVICES];

void mt_growth_end_part(int device, uint64_t allocated);

/* With each report: what is given out on a device now, and whether that is less than before. In the path of every
 * event. */
static inline __attribute__((always_inline)) void mt_growth_update(int device, uint64_t allocated, bool freed) {
  if ((unsigned)device >= MT_GROWTH_DEVICES) return;
  struct mt_growth_part *part = &mt_growth_parts[device];
  __atomic_store_n(&part->allocated, allocated, __ATOMIC_RELAXED);
  if (freed) {
    if (allocated < __atomic_load_n(&part->lowest, __ATOMIC_RELAXED))
      __atomic_store_n(&part->lowest, allocated, __ATOMIC_RELAXED);
  } else if (allocated > __atomic_load_n(&part->highest, __ATOMIC_RELAXED)) {
    __atomic_store_n(&part->highest, allocated, __ATOMIC_RELAXED);
  }
  uint32_t left = __atomic_load_n(&part->left, __ATOMIC_RELAXED);
  if (left > 1)
    __atomic_store_n(&part->left, left - 1, __ATOMIC_RELAXED);
  else
    mt_growth_end_part(device, allocated);
}

/* Whether the lowest value rose from the second quarter of the run to the third and the fourth, by a sixteenth of the
 * highest value in all: by about a tenth over three quarters, if it rises evenly. */
bool mt_growth_detected(void);

/* Calls a function where that holds: when the run has had 2,048 reports of a device, and each time twice as many. On
 * the thread that reports, which may have the allocator's lock. */
void mt_growth_on_rise(void (*call)(void));

/* What is given out now, on all of these devices. */
uint64_t mt_growth_allocated(void);
