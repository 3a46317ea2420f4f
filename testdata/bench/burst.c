#define _GNU_SOURCE
#include "burst.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include "frames.h"

enum { PATHS = 8, INNER = 2, BLOCKS = 4096 };

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *, int64_t, uint64_t, uint64_t, uint16_t);

struct event {
  uint64_t thread, number;
  int64_t size;
  unsigned *frames; /* not NULL: count them instead of reporting */
};

struct work {
  struct burst *burst;
  char *room;
  unsigned frames;
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

double burst_ticks_per_ns(void) {
  static double rate;
  if (!rate) {
    double begin = now();
    uint64_t ticks = __rdtsc();
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    ticks = __rdtsc() - ticks;
    rate = (double)ticks / (now() - begin);
  }
  return rate;
}

static void report(void *argument) {
  const struct event *e = argument;
  void *block = (void *)((e->thread + 1) << 40 | (e->number % BLOCKS + 1) * 512);
  if (e->frames) *e->frames = frames_here();
  else _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(block, e->size, 512, 2 << 20, 1);
  __asm__ volatile(""); /* a tail call would take this frame off the stack */
}

static inline void report_from(const struct burst *b, struct event *e) {
  uint64_t path = b->random ? e->number * 0x9e3779b97f4a7c15ull >> 40 : e->number;
  if (b->levels == BURST_FLAT) report(e);
  else frames_descend(INNER, path % PATHS << 3, report, e);
}

/* All at once: reading the clock around each would cost more than an event does. A fifth more goes before, uncounted:
 * the thread has just slept. */
static __attribute__((noinline)) double hot(const struct burst *b, int64_t size) {
  double begin = 0;
  for (uint32_t i = 0, before = b->events / 5; i < before + b->events; i++) {
    if (i == before) begin = now();
    report_from(b, &(struct event){b->thread, i, size, NULL});
  }
  return (now() - begin) / b->events;
}

static __attribute__((noinline)) double touched(const struct work *w, int64_t size) {
  const struct burst *b = w->burst;
  uint64_t ticks = 0;
  for (uint32_t i = 0; i < b->events; i++) {
    memset(w->room, (int)i, b->touched);
    __asm__ volatile("" ::: "memory");
    uint64_t begin = __rdtsc();
    report_from(b, &(struct event){b->thread, i, size, NULL});
    ticks += __rdtsc() - begin;
  }
  return (double)ticks / burst_ticks_per_ns() / b->events;
}

static __attribute__((noinline)) void counted(struct work *w) {
  report_from(w->burst, &(struct event){.frames = &w->frames});
}

static void both_kinds(void *argument) {
  struct work *w = argument;
  struct burst *b = w->burst;
  b->alloc_ns = b->touched ? touched(w, 512) : hot(b, 512);
  b->free_ns = b->touched ? touched(w, -512) : hot(b, -512);
}

static void count_frames(void *argument) {
  counted(argument);
  __asm__ volatile("");
}

static __attribute__((noinline)) void run(struct work *w, void (*at_bottom)(void *)) {
  if (w->burst->levels == BURST_FLAT) at_bottom(w);
  else frames_descend((unsigned)w->burst->levels, 0x5a5a5a5a5a5a5a5aull, at_bottom, w);
  __asm__ volatile("");
}

__attribute__((noinline)) void burst_run(struct burst *b) {
  struct work w = {.burst = b};
  if (b->touched && !(w.room = malloc(b->touched))) abort();
  run(&w, both_kinds);
  free(w.room);
}

__attribute__((noinline)) int32_t burst_levels_for(unsigned frames) {
  struct burst least = {0};
  struct work w = {.burst = &least};
  run(&w, count_frames);
  return frames > w.frames ? (int32_t)(frames - w.frames) : 0;
}
