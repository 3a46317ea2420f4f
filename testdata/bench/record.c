/* What one framework event costs its thread: reports blocks as PyTorch's allocator does, in bursts with pauses, so that the drainer keeps up and segments are
 * reused as in a real run.
 *
 *   record THREADS BURSTS [floor]
 *
 * Prints nanoseconds per report, one line a burst. With floor it does not report: it stores 64 bytes and reads the time stamp counter, the least that any
 * recorder must do. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

enum { BURST = 1000, PAUSE_US = 4000, THREADS_MAX = 16, FLOOR_BYTES = 256 << 10 };

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *, int64_t, uint64_t, uint64_t, uint16_t);

static long bursts;
static int only_floor;
static pthread_barrier_t together;
static double *cost[THREADS_MAX]; /* ns per report, a row a thread */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void pause_a_little(void) { nanosleep(&(struct timespec){.tv_nsec = PAUSE_US * 1000}, NULL); }

/* An allocator hands out a block and takes one back in turns. */
static void report_burst(uint64_t thread) {
  for (uint64_t i = 0; i < BURST; i += 2) {
    void *block = (void *)((thread << 40) + (i + 1) * 512);
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(block, 512, 512, 2 << 20, 1);
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(block, -512, 0, 2 << 20, 1);
  }
}

static void floor_burst(uint64_t *ring, uint64_t *at) {
  for (uint64_t i = 0; i < BURST; i++) {
    uint64_t *slot = ring + *at;
    slot[1] = __rdtsc();
    for (int word = 2; word < 8; word++) slot[word] = i;
    __atomic_store_n(slot, i + 1, __ATOMIC_RELEASE);
    *at = (*at + 8) % (FLOOR_BYTES / 8);
  }
}

static void *work(void *number) {
  uint64_t thread = (uint64_t)number, at = 0;
  uint64_t *ring = aligned_alloc(64, FLOOR_BYTES);
  if (!ring) abort();
  memset(ring, 1, FLOOR_BYTES);
  for (long i = -20; i < bursts; i++) { /* the first twenty warm up */
    pthread_barrier_wait(&together);
    double begin = now();
    if (only_floor)
      floor_burst(ring, &at);
    else
      report_burst(thread);
    double each = (now() - begin) / BURST;
    if (i >= 0) cost[thread][i] = each;
    pause_a_little();
  }
  free(ring);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  long threads = atol(argv[1]);
  bursts = atol(argv[2]);
  only_floor = argc > 3 && !strcmp(argv[3], "floor");
  if (threads < 1 || threads > THREADS_MAX || bursts < 1) return 2;
  pthread_t id[THREADS_MAX];
  pthread_barrier_init(&together, NULL, (unsigned)threads);
  for (long i = 0; i < threads; i++) {
    cost[i] = calloc((size_t)bursts, sizeof **cost);
    if (!cost[i] || pthread_create(&id[i], NULL, work, (void *)i)) abort();
  }
  for (long i = 0; i < threads; i++) pthread_join(id[i], NULL);
  for (long i = 0; i < threads; i++)
    for (long j = 0; j < bursts; j++) printf("%.2f\n", cost[i][j]);
  return 0;
}
