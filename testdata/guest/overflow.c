/* A traced process without CUDA whose true peak is known, for recorders that run out of room: each thread keeps 16
 * blocks, and frees the oldest one before it takes the next.
 *
 *   overflow THREADS BLOCKS [counted]
 *
 * No address comes twice, so that nothing tells of a free whose record was lost. With "counted" every event carries the
 * bytes that are live, as PyTorch's do. Prints the peak when all blocks are freed, and ends when its input does. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *, int64_t, uint64_t, uint64_t, uint16_t);

enum { KEPT = 16 };

static long blocks;
static int counted;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t live, peak;

static int64_t size_of(long i) { return 1000 + i % 1000; }

/* An allocator reports under its lock, so that its counters are those of the event. */
static void report(uint64_t thread, long i, int64_t bytes) {
  pthread_mutex_lock(&lock);
  live += (uint64_t)bytes;
  if (live > peak) peak = live;
  _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)((thread << 40) + ((uint64_t)i + 1) * 4096), bytes,
                                                        counted ? live : 0, counted ? 1 << 30 : 0, 1);
  pthread_mutex_unlock(&lock);
}

static void *work(void *number) {
  uint64_t thread = (uint64_t)number;
  for (long i = 0; i < blocks; i++) {
    if (i >= KEPT) report(thread, i - KEPT, -size_of(i - KEPT));
    report(thread, i, size_of(i));
  }
  for (long i = blocks > KEPT ? blocks - KEPT : 0; i < blocks; i++) report(thread, i, -size_of(i));
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  long count = atol(argv[1]);
  pthread_t threads[64];
  blocks = atol(argv[2]);
  counted = argc > 3 && !strcmp(argv[3], "counted");
  if (count > 64) return 2;
  for (long i = 0; i < count; i++)
    if (pthread_create(&threads[i], NULL, work, (void *)(i + 1))) abort();
  for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
  printf("%llu\n", (unsigned long long)peak);
  fflush(stdout);
  while (getchar() != EOF) {
  }
  return 0;
}
