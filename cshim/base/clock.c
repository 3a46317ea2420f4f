#define _GNU_SOURCE
#include "base/clock.h"

#include <string.h>

bool mt_clock_tsc;

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

void mt_clock_start(struct mt_spool_header *header) {
  mt_sys_find_clock();
  mt_clock_tsc = kernel_trusts_tsc();
  header->clock_is_tsc = mt_clock_tsc;
  header->clock_first = header->clock_last = take_pair();
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
