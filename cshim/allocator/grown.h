/* Whether what PyTorch's allocator has given out grew throughout the run, by its lowest values. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MT_GROWN_DEVICES 16

/* The part of the run that goes on, by device. */
extern struct mt_grown_part {
  uint64_t lowest, highest; /* in this part; in the whole run */
  uint32_t left; /* reports until it ends */
} mt_grown_parts[MT_GROWN_DEVICES];

void mt_grown_end_part(int device, uint64_t allocated);

/* With each report: what is given out on a device now, and whether that is less than before. In the path of every
 * event. */
static inline __attribute__((always_inline)) void mt_grown_note(int device, uint64_t allocated, bool freed) {
  if ((unsigned)device >= MT_GROWN_DEVICES) return;
  struct mt_grown_part *part = &mt_grown_parts[device];
  if (freed) {
    if (allocated < part->lowest) part->lowest = allocated;
  } else if (allocated > part->highest) {
    part->highest = allocated;
  }
  if (!--part->left) mt_grown_end_part(device, allocated);
}

/* Whether the lowest values of the last three quarters of the run only rose, by a tenth of the highest value. */
bool mt_grown(void);
