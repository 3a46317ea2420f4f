#define _GNU_SOURCE
#include "base/clock.h"

#include <string.h>
#include <sys/prctl.h>

#define MT_RATE_NS_MIN 2000000u /* long enough that the rate is off by some 50 ns at most */

bool mt_clock_tsc;
static bool tsc_disabled;

/* Extrapolates the TSC from two clock pairs. */
static struct {
  struct mt_clock_pair first, last;
  uint64_t rate; /* ticks in 2^32 ns */
  bool valid;
} tsc;

static bool kernel_trusts_tsc(void) {
#if defined(__x86_64__)
  char name[16] = {0};
  return mt_sys_read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", name, sizeof name) >= 3 &&
         !memcmp(name, "tsc", 3);
#else
  return false;
#endif
}

/* Takes the best of three: the one whose two tick readings are closest together. */
static struct mt_clock_pair take_pair(void) {
  struct mt_clock_pair best = {0};
  uint64_t narrowest = UINT64_MAX;
  for (int i = 0; i < 3; i++) {
    struct timespec mono, real;
    uint64_t before = mt_clock_ticks();
    mt_sys_clock(CLOCK_MONOTONIC, &mono);
    uint64_t after = mt_clock_ticks();
    mt_sys_clock(CLOCK_REALTIME, &real);
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    best.ticks = before + (after - before) / 2;
    best.monotonic_ns = mono.tv_sec * 1000000000ll + mono.tv_nsec;
    best.realtime_ns = real.tv_sec * 1000000000ll + real.tv_nsec;
  }
  return best;
}

uint64_t mt_clock_fallback(void) {
  uint64_t now = mt_clock_monotonic();
  if (!__atomic_load_n(&tsc.valid, __ATOMIC_ACQUIRE)) return now;
  __extension__ typedef unsigned __int128 wide;
  return tsc.last.ticks + (uint64_t)((wide)(now - (uint64_t)tsc.last.monotonic_ns) * tsc.rate >> 32);
}

void mt_clock_disable_tsc(void) {
  if (__atomic_exchange_n(&tsc_disabled, true, __ATOMIC_ACQ_REL)) return;
  mt_sys_drop_vdso_clock();
  if (!mt_clock_tsc) return;
  tsc.last = take_pair();
  if (tsc.last.monotonic_ns - tsc.first.monotonic_ns < MT_RATE_NS_MIN) {
    mt_sys_sleep(MT_RATE_NS_MIN);
    tsc.last = take_pair();
  }
  uint64_t ticks = tsc.last.ticks - tsc.first.ticks,
           ns = (uint64_t)(tsc.last.monotonic_ns - tsc.first.monotonic_ns);
  for (; ticks >> 32; ticks >>= 1) ns >>= 1;
  tsc.rate = (ticks << 32) / ns;
  __atomic_store_n(&tsc.valid, true, __ATOMIC_RELEASE);
  __atomic_store_n(&mt_clock_tsc, false, __ATOMIC_RELEASE);
}

bool mt_clock_tsc_disabled(void) { return __atomic_load_n(&tsc_disabled, __ATOMIC_ACQUIRE); }

/* PR_SET_TSC by a raw system call of the program, or inherited. */
static bool disabled_by_prctl(void) {
#ifdef PR_GET_TSC
  int mode = 0;
  return !mt_sys(SYS_prctl, PR_GET_TSC, &mode) && mode == PR_TSC_SIGSEGV;
#else
  return false;
#endif
}

void mt_clock_start(struct mt_spool_header *header) {
  tsc.valid = mt_clock_tsc = false; /* a parent's */
  if (disabled_by_prctl()) mt_clock_disable_tsc();
  if (!mt_clock_tsc_disabled()) {
    mt_sys_find_vdso_clock();
    mt_clock_tsc = kernel_trusts_tsc();
  }
  header->clock_is_tsc = mt_clock_tsc;
  header->clock_first = header->clock_last = tsc.first = take_pair();
}

void mt_clock_refresh(struct mt_spool_header *header) {
  uint32_t version = __atomic_load_n(&header->clock_version, __ATOMIC_RELAXED);
  if (version & 1 || !__atomic_compare_exchange_n(&header->clock_version, &version, version + 1, false,
                                                  __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
    return;
  __atomic_thread_fence(__ATOMIC_RELEASE);
  header->clock_last = take_pair();
  __atomic_store_n(&header->clock_version, version + 2, __ATOMIC_RELEASE);
}
