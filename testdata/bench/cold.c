/* What is paid once: the first event of a thread, of a stack, of a library.
 *
 *   cold thread|stack|library TIMES [FRAMES] [LIBRARY...]
 *
 * Prints two numbers a line, in nanoseconds: the first event and, right behind it and from the same place, a second
 * one. A library is one that exports frames_descend; each is loaded and unloaded once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

#include "burst.h"
#include "frames.h"

enum { PASSES = 2 };

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *, int64_t, uint64_t, uint64_t, uint16_t);

typedef void descend(unsigned levels, uint64_t path, void (*at_bottom)(void *), void *argument);

struct place {
  unsigned levels;
  uint64_t path;
  descend *descend;
  double ns[PASSES];
};

static void report(void *nothing) {
  (void)nothing;
  _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)4096, 512, 512, 2 << 20, 1);
  __asm__ volatile("");
}

static void measure(struct place *p) {
  for (int i = 0; i < PASSES; i++) {
    uint64_t begin = __rdtsc();
    p->descend(p->levels, p->path, report, NULL);
    p->ns[i] = (double)(__rdtsc() - begin) / burst_ticks_per_ns();
  }
}

static void say(const struct place *p) { printf("%.0f %.0f\n", p->ns[0], p->ns[1]); }

static void *in_thread(void *place) {
  measure(place);
  return NULL;
}

static void threads(long times, unsigned levels) {
  for (long i = 0; i < times; i++) {
    struct place p = {.levels = levels, .descend = frames_descend};
    pthread_t id;
    if (pthread_create(&id, NULL, in_thread, &p)) abort();
    pthread_join(id, NULL);
    say(&p);
  }
}

/* Every function is known by then, only their order is new. */
static void stacks(long times, unsigned levels) {
  for (long i = 1; i <= times; i++) {
    struct place p = {.levels = levels, .path = (uint64_t)i * 0x9e3779b97f4a7c15ull, .descend = frames_descend};
    measure(&p);
    say(&p);
  }
}

static int libraries(unsigned levels, char **path) {
  for (; *path; path++) {
    void *handle = dlopen(*path, RTLD_NOW | RTLD_LOCAL);
    descend *found = handle ? (descend *)dlsym(handle, "frames_descend") : NULL;
    if (!found) {
      fprintf(stderr, "%s: %s\n", *path, dlerror());
      return 1;
    }
    struct place p = {.levels = levels, .path = 0x5a3c96e1b4d2870full, .descend = found};
    measure(&p);
    say(&p);
    dlclose(handle);
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  long times = atol(argv[2]);
  unsigned levels = (unsigned)atoi(argv[3]);
  burst_ticks_per_ns();
  for (uint64_t path = 0; path < 64; path++) { /* the recording is up, and every function of this program known */
    struct place p = {.levels = levels, .path = path * 0x9e3779b97f4a7c15ull >> 1, .descend = frames_descend};
    measure(&p);
  }
  if (!strcmp(argv[1], "thread")) threads(times, levels);
  else if (!strcmp(argv[1], "stack")) stacks(times, levels);
  else if (!strcmp(argv[1], "library")) return libraries(levels, argv + 4);
  else return 2;
  return 0;
}
