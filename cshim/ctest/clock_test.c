/* Clock pairs: ordered, whole, and refreshed by one thread at a time. */
#define _GNU_SOURCE
#include "base/clock.h"

#include <string.h>

#include "check.h"

static struct mt_spool_header header;

static void pairs(void) {
  mt_clock_start(&header);
  CHECK_EQ(memcmp(&header.clock_first, &header.clock_last, sizeof header.clock_first), 0);
  CHECK_EQ(header.clock_is_tsc, mt_clock_tsc);
  struct mt_clock_pair before = header.clock_last;
  uint64_t low = mt_clock_ticks(), low_ns = mt_clock_monotonic();
  mt_clock_refresh(&header);
  uint64_t high = mt_clock_ticks(), high_ns = mt_clock_monotonic();
  CHECK(header.clock_last.ticks >= low && header.clock_last.ticks <= high);
  CHECK(header.clock_last.monotonic_ns >= (int64_t)low_ns && header.clock_last.monotonic_ns <= (int64_t)high_ns);
  CHECK(header.clock_last.ticks > before.ticks && header.clock_last.monotonic_ns > before.monotonic_ns);
  CHECK_EQ(header.clock_version, 2);
}

/* Without the time stamp counter, ticks are nanoseconds. */
static void fallback(void) {
  mt_clock_start(&header);
  mt_clock_tsc = false;
  uint64_t a = mt_clock_monotonic(), b = mt_clock_ticks(), c = mt_clock_monotonic();
  CHECK(a <= b && b <= c);
}

static void refresh(uint64_t number) {
  (void)number;
  for (int i = 0; i < 2000; i++) mt_clock_refresh(&header);
}

static void busy(void) {
  mt_clock_start(&header);
  check_threads(4, refresh);
  CHECK_EQ(header.clock_version % 2, 0);
  CHECK(header.clock_version >= 2 && header.clock_version <= 4 * 2000 * 2);
  header.clock_version |= 1; /* somebody is at it */
  struct mt_clock_pair before = header.clock_last;
  mt_clock_refresh(&header);
  CHECK_EQ(memcmp(&before, &header.clock_last, sizeof before), 0);
}

/* A program that forbids the counter amid a recording: ticks go on as the counter would have. */
static void forbidden(void) {
  mt_clock_start(&header);
  if (!mt_clock_tsc) return check_skip("no counter here");
  uint64_t before = mt_clock_ticks(), begin = mt_clock_monotonic();
  mt_clock_disable_tsc();
  CHECK(!mt_clock_tsc && mt_clock_tsc_disabled());
#if defined(__x86_64__)
  for (int i = 0; i < 100; i++) {
    uint64_t low = __rdtsc(), got = mt_clock_ticks(), high = __rdtsc(), slack = (high - before) / 1000 + 100000;
    CHECK(got + slack >= low && got <= high + slack);
  }
#endif
  CHECK(mt_clock_ticks() > before && mt_clock_monotonic() > begin);
  mt_clock_start(&header); /* another recording counts nanoseconds */
  CHECK(!header.clock_is_tsc && mt_clock_ticks() >= begin && mt_clock_ticks() <= mt_clock_monotonic());
}

int main(void) {
  static const struct check_case cases[] = {
      {"pairs", pairs}, {"fallback", fallback}, {"busy", busy}, {"forbidden", forbidden}};
  return check_main("clock", cases, sizeof cases / sizeof *cases);
}
