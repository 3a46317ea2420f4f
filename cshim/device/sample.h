/* One reading of a device by NVML at a moment without memory calls under way, as a record whose order number is that
 * moment. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device/nvml.h"

enum mt_sample_result {
  MT_READING_SETTLED,
  MT_READING_UNSETTLED, /* memory changed during every attempt */
  MT_READING_LOST,      /* no room for the record just now; counted */
  MT_READING_REFUSED,   /* by the management library */
  MT_READING_OVER,      /* nothing can be recorded any more */
};

struct mt_sample {
  mt_nvml_device device;
  int ordinal;          /* as the program counts */
  const char *occasion; /* name in the trace */
  bool share;           /* read the processes' shares, too */
  bool will_retry;         /* write no record if it does not settle: there will be another attempt */
};

/* Takes and records it; *used is what was in use, set unless refused. Calls the driver and the management library:
 * between mt_forklock_acquire and mt_forklock_release. */
enum mt_sample_result mt_sample_take(const struct mt_sample *want, uint64_t *used);
