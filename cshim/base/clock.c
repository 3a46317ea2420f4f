#define _GNU_SOURCE
#include "base/clock.h"

#include <string.h>
#include <sys/prctl.h>

#define MT_LEAST_NS 2000000u /* for a rate that is right to some 50 ns in it */

bool mt_clock_tsc;
static bool forbidden;

/* What the counter would say: by its rate between two pairs, from the second one on. */
static struct {
  struct mt_clock_pair first, last;
  uint64_t rate; /* ticks in 2^32 ns */
  bool valid;
} counter;

static bool kernel_trusts_tsc(void) {
#if defined(__x86_64__)
  char name[16] = {0};
  return mt_sys_read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", name, sizeof name) >= 3 &&
         !memcmp(name, "tsc", 3);
#else
  return false;
#endif
}

/* Of a few tries the one whose two tick readings lie closest together pairs best. */
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

uint64_t mt_clock_otherwise(void) {
  uint64_t now = mt_clock_monotonic();
  if (!__atomic_load_n(&counter.valid, __ATOMIC_ACQUIRE)) return now;
  __extension__ typedef unsigned __int128 wide;
  return counter.last.ticks + (uint64_t)((wide)(now - (uint64_t)counter.last.monotonic_ns) * counter.rate >> 32);
}

void mt_clock_forbid(void) {
  if (__atomic_exchange_n(&forbidden, true, __ATOMIC_ACQ_REL)) return;
  mt_sys_forget_clock();
  if (!mt_clock_tsc) return;
  counter.last = take_pair();
  if (counter.last.monotonic_ns - counter.first.monotonic_ns < MT_LEAST_NS) {
    mt_sys_sleep(MT_LEAST_NS);
    counter.last = take_pair();
  }
  uint64_t ticks = counter.last.ticks - counter.first.ticks,
           ns = (uint64_t)(counter.last.monotonic_ns - counter.first.monotonic_ns);
  for (; ticks >> 32; ticks >>= 1) ns >>= 1;
  counter.rate = (ticks << 32) / ns;
  __atomic_store_n(&counter.valid, true, __ATOMIC_RELEASE);
  __atomic_store_n(&mt_clock_tsc, false, __ATOMIC_RELEASE);
}

bool mt_clock_is_forbidden(void) { return __atomic_load_n(&forbidden, __ATOMIC_ACQUIRE); }

/* By a system call of the program's own, or by who started it. */
static bool was_forbidden(void) {
#ifdef PR_GET_TSC
  int mode = 0;
  return !mt_sys(SYS_prctl, PR_GET_TSC, &mode) && mode == PR_TSC_SIGSEGV;
#else
  return false;
#endif
}

void mt_clock_start(struct mt_spool_header *header) {
  counter.valid = mt_clock_tsc = false; /* a parent's */
  if (was_forbidden()) mt_clock_forbid();
  if (!mt_clock_is_forbidden()) {
    mt_sys_find_clock();
    mt_clock_tsc = kernel_trusts_tsc();
  }
  header->clock_is_tsc = mt_clock_tsc;
  header->clock_first = header->clock_last = counter.first = take_pair();
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
