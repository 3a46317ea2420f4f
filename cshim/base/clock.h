/* Event time: the time stamp counter where the kernel trusts it as a clock source, else CLOCK_MONOTONIC. The header
 * carries pairs that turn ticks into nanoseconds; conversion is the reader's work. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/sys.h"
#include "spool.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

extern bool mt_clock_tsc;

static inline uint64_t mt_clock_monotonic(void) {
  struct timespec t;
  mt_sys_clock(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* Without the TSC: nanoseconds, or extrapolated ticks in a recording that began with it. */
uint64_t mt_clock_fallback(void);

static inline uint64_t mt_clock_ticks(void) {
#if defined(__x86_64__)
  if (mt_clock_tsc) return __rdtsc();
#endif
  return mt_clock_fallback();
}

/* Chooses the source and takes the first pair. */
void mt_clock_start(struct mt_spool_header *header);

/* Stops reading the TSC, and reads the kernel's clock by system calls alone, since the vDSO reads the TSC, too: the
 * program is about to call prctl(PR_SET_TSC, PR_TSC_SIGSEGV). */
void mt_clock_disable_tsc(void);
bool mt_clock_tsc_disabled(void);

/* Takes a fresh pair; called where time has passed anyway (a segment filled up, the end). Skips if another thread is
 * doing so. */
void mt_clock_refresh(struct mt_spool_header *header);
