/* bench_step() says that a training step begins: from the step that BENCH_FROM names on callgrind counts, each step's
 * count a dump of its own, for BENCH_STEPS steps. */
#include <stdio.h>
#include <stdlib.h>
#include <valgrind/callgrind.h>

void bench_step(void);

static int number(const char *name) {
  const char *value = getenv(name);
  return value ? atoi(value) : 0;
}

__attribute__((visibility("default"))) void bench_step(void) {
  static int step;
  int from = number("BENCH_FROM"), end = from + number("BENCH_STEPS");
  if (step == from) {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
  } else if (step > from && step <= end) {
    char name[32];
    snprintf(name, sizeof name, "step %d", step - 1);
    CALLGRIND_DUMP_STATS_AT(name);
    if (step == end) CALLGRIND_STOP_INSTRUMENTATION;
  }
  step++;
}
