/* Programs as their allocator sees them: what was given out, after each of its calls. */
#include "allocator/growth.h"

#include "check.h"

static uint64_t held[16];

static void take(int device, uint64_t mebibytes) { mt_growth_update(device, held[device] += mebibytes << 20, false); }
static void give(int device, uint64_t mebibytes) { mt_growth_update(device, held[device] -= mebibytes << 20, true); }

/* Iterations that hold 40 MiB for a while, and leave so much. */
static void iterate(int device, unsigned count, uint64_t leave) {
  for (unsigned i = 0; i < count; i++) {
    for (unsigned block = 0; block < 10; block++) take(device, 4);
    if (leave) take(device, leave);
    for (unsigned block = 0; block < 10; block++) give(device, 4);
  }
}

static unsigned rises;
static void count_rise(void) { rises++; }

/* A device of its own for each case: one that grew is told for good. */
static void judge(void) {
  take(0, 100);
  CHECK(!mt_growth_detected());
  iterate(0, 1000, 0);
  CHECK(!mt_growth_detected()); /* as high as at first */
  for (unsigned i = 0; i < 200; i++) take(1, 5);
  iterate(1, 5000, 0);
  CHECK(!mt_growth_detected()); /* it was loaded first */
  take(2, 500);
  iterate(2, 20, 1);
  CHECK(!mt_growth_detected()); /* by less than a tenth */
  for (unsigned i = 0; i < 200; i++) iterate(3, 10, 1), give(3, 10);
  CHECK(!mt_growth_detected()); /* a cache that is emptied */
  mt_growth_update(-1, 1, false), mt_growth_update(16, 1, true);
  uint64_t sum = 0;
  for (int i = 0; i < 16; i++) sum += held[i];
  CHECK_EQ(mt_growth_allocated(), sum);
  take(4, 100);
  iterate(4, 1000, 1);
  CHECK(mt_growth_detected());
}

/* What is cleared from time to time grows where some of it stays. */
static void judge_waves(void) {
  for (unsigned i = 0; i < 10; i++) iterate(6, 200, 1), give(6, 200);
  CHECK(!mt_growth_detected()); /* all of it */
  for (unsigned i = 0; i < 10; i++) iterate(7, 200, 1), give(7, 150);
  CHECK(mt_growth_detected());
}

/* After 2,048, 4,096 and so on up to 65,536 of 66,000 reports. */
static void call_while_growing(void) {
  mt_growth_on_rise(count_rise);
  iterate(9, 3000, 0);
  CHECK_EQ(rises, 0);
  take(10, 100);
  for (unsigned i = 0; i < 33000; i++) take(10, 2), give(10, 1);
  CHECK_EQ(rises, 6);
  mt_growth_on_rise(NULL);
}

/* However long it goes on, and when it begins late within the first quarter. */
static void judge_long(void) {
  iterate(5, 1000, 0);
  iterate(5, 100000, 1);
  CHECK(mt_growth_detected());
}

int main(void) {
  static const struct check_case cases[] = {
      {"what grows and what does not", judge},
      {"waves", judge_waves},
      {"while it grows", call_while_growing},
      {"a long run", judge_long},
  };
  return check_main("growth", cases, sizeof cases / sizeof *cases);
}
