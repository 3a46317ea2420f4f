/* Whether what PyTorch's allocator has given out grew throughout the run, by its lowest values. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* With each of its reports: what is given out on a device now. */
void mt_grown_note(int device, uint64_t allocated);

/* Whether the lowest values of the last three quarters of the run only rose, by a tenth of the highest value. */
bool mt_grown(void);
