/* Parts of functions that the compiler moved away, against return addresses: code that the compiler takes for unlikely
 * notes where it was called from. */
#include "unwind/splitranges.h"

#include "check.h"
#include "unwind/unwind.h"

static volatile int odds[6];
static uintptr_t called_from;

__attribute__((cold, noinline)) static int note(int value) {
  called_from = (uintptr_t)__builtin_return_address(0);
  return value * 3;
}

/* Six ways into the unlikely, each with a way back into the middle. */
__attribute__((noinline, used)) static int split(int value) {
  for (int i = 0; i < 10; i++) {
    if (value + i == odds[0]) value += note(value);
    if (value * 3 == odds[1]) value ^= note(value + 1);
    if (value - i == odds[2]) value -= note(value + 2);
    if (value * i == odds[3]) value += note(value + 3) * i;
    if ((value ^ i) == odds[4]) value -= note(value + 4) / 3;
    if (value / 2 == odds[5]) value ^= note(value + 5) << 1;
    value = value * 7 + odds[i % 6];
  }
  return value;
}

__attribute__((noinline, used)) static int whole(int value) { return value * odds[1] + odds[2]; }

static void find_parts(void) {
  uintptr_t start, end;
  struct mt_code_range parts[MT_SPLIT_RANGES];
  odds[0] = 5;
  split(5);
  CHECK(called_from);
  CHECK(mt_unwind_function((uintptr_t)split, &start, &end));
  if (called_from - 1 >= start && called_from - 1 < end) {
    check_skip("this compiler leaves the unlikely in its place");
    return;
  }
  CHECK_EQ(mt_split_ranges(start, end, parts), 1);
  CHECK(called_from - 1 >= parts[0].start && called_from - 1 < parts[0].end);
  CHECK(parts[0].end <= start || parts[0].start >= end);
}

static void find_none(void) {
  uintptr_t start, end;
  struct mt_code_range parts[MT_SPLIT_RANGES];
  CHECK(mt_unwind_function((uintptr_t)whole, &start, &end));
  CHECK_EQ(mt_split_ranges(start, end, parts), 0);
  CHECK_EQ(mt_split_ranges(1, 5, parts), 0); /* no code at all */
  CHECK_EQ(mt_split_ranges(start, start, parts), 0);
}

int main(void) {
  static const struct check_case cases[] = {{"a part that was moved away", find_parts},
                                            {"functions in one piece", find_none}};
  return check_main("coldparts", cases, sizeof cases / sizeof *cases);
}
