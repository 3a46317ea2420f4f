#define _GNU_SOURCE
#include "instructions.h"

#include <sys/resource.h>
#include <valgrind/callgrind.h>

#include "frames.h"

enum { WARM_UP = 2000, COUNTED = 5000, PATHS = 4, DESCRIPTORS = 31 };

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *, int64_t, uint64_t, uint64_t, uint16_t);

void instructions_alone(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = DESCRIPTORS; /* one too few for a Go runtime (cshim/process/boot.c) */
  setrlimit(RLIMIT_NOFILE, &limit);
}

void instructions_count(const struct instructions_case *c) {
  for (uint64_t i = 0; i < WARM_UP; i++) c->once(c->argument, i);
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
  CALLGRIND_TOGGLE_COLLECT;
  for (uint64_t i = 0; i < COUNTED; i++) c->once(c->argument, i);
  CALLGRIND_TOGGLE_COLLECT;
  CALLGRIND_DUMP_STATS_AT(c->name);
  CALLGRIND_STOP_INSTRUMENTATION;
}

static void report(void *block) {
  _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(block, 512, 512, 2 << 20, 1);
  _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(block, -512, 0, 2 << 20, 1);
  __asm__ volatile("");
}

/* Each time another stack than the time before, as in a program that works. */
static void report_from(void *levels, uint64_t number) {
  void *block = (void *)((number % 64 + 1) * 512);
  int32_t n = *(int32_t *)levels;
  if (n < 0) report(block);
  else frames_descend((unsigned)n, number % PATHS * 0x9e3779b97f4a7c15ull, report, block);
}

/* Which one comes next cannot be told from those before. */
static void report_from_any(void *levels, uint64_t number) {
  report_from(levels, number * 0x9e3779b97f4a7c15ull >> 40);
}

void instructions_report(const char *name, int32_t levels, bool random) {
  instructions_count(&(struct instructions_case){name, random ? report_from_any : report_from, &levels});
}
