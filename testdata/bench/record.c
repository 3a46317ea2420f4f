/* What one framework event costs its thread: reports blocks as PyTorch's allocator does, in bursts with pauses, so that
 * the drainer keeps up and segments are reused as in a real run.
 *
 *   record THREADS BURSTS FRAMES TOUCHED [random]
 *
 * FRAMES is how many native frames a report has on its stack, 0: as few as can be. TOUCHED bytes are written between
 * two events, 0: none. With random the stacks come in an order that cannot be foreseen. Prints nanoseconds per
 * allocation and per free, one line a burst.
 *
 *   record THREADS BURSTS floor
 *
 * stores 64 bytes and reads the time stamp counter instead, the least that any recorder must do. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include "burst.h"

enum { EVENTS = 500, TOUCHED_EVENTS = 100, WARM_UP = 20, PAUSE_US = 4000, THREADS_MAX = 16, FLOOR_BYTES = 256 << 10 };

static long bursts;
static int only_floor, random_order;
static unsigned frames;
static uint32_t touched;
static pthread_barrier_t together;
static struct burst *cost[THREADS_MAX]; /* a row a thread */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void floor_burst(struct burst *b, uint64_t *ring, uint64_t *at) {
  double begin = now();
  for (uint64_t i = 0; i < 2 * EVENTS; i++) {
    uint64_t *slot = ring + *at;
    slot[1] = __rdtsc();
    for (int word = 2; word < 8; word++) slot[word] = i;
    __atomic_store_n(slot, i + 1, __ATOMIC_RELEASE);
    *at = (*at + 8) % (FLOOR_BYTES / 8);
  }
  b->alloc_ns = b->free_ns = (now() - begin) / (2 * EVENTS);
}

static void *work(void *number) {
  uint64_t thread = (uint64_t)number, at = 0;
  uint64_t *ring = aligned_alloc(64, FLOOR_BYTES);
  if (!ring) abort();
  memset(ring, 1, FLOOR_BYTES);
  int32_t levels = frames ? burst_levels_for(frames) : BURST_FLAT;
  for (long i = -WARM_UP; i < bursts; i++) {
    struct burst b = {.events = touched ? TOUCHED_EVENTS : EVENTS,
                      .thread = (uint32_t)thread, .levels = levels, .touched = touched,
                      .random = (uint32_t)random_order};
    pthread_barrier_wait(&together);
    if (only_floor) floor_burst(&b, ring, &at);
    else burst_run(&b);
    if (i >= 0) cost[thread][i] = b;
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_US * 1000}, NULL);
  }
  free(ring);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  long threads = atol(argv[1]);
  bursts = atol(argv[2]);
  only_floor = !strcmp(argv[3], "floor");
  if (threads < 1 || threads > THREADS_MAX || bursts < 1 || (!only_floor && argc < 5)) return 2;
  if (!only_floor) {
    frames = (unsigned)atoi(argv[3]);
    touched = (uint32_t)atol(argv[4]);
    random_order = argc > 5 && !strcmp(argv[5], "random");
  }
  pthread_t id[THREADS_MAX];
  burst_ticks_per_ns();
  pthread_barrier_init(&together, NULL, (unsigned)threads);
  for (long i = 0; i < threads; i++) {
    cost[i] = calloc((size_t)bursts, sizeof **cost);
    if (!cost[i] || pthread_create(&id[i], NULL, work, (void *)i)) abort();
  }
  for (long i = 0; i < threads; i++) pthread_join(id[i], NULL);
  for (long i = 0; i < threads; i++)
    for (long j = 0; j < bursts; j++) printf("%.2f %.2f\n", cost[i][j].alloc_ns, cost[i][j].free_ns);
  return 0;
}
