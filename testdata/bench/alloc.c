/* What a pair of cuMemAlloc and cuMemFree costs.
 *
 *   alloc THREADS PAIRS
 *
 * Prints nanoseconds per pair, one line for every hundred pairs of every thread. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LOT = 100, THREADS_MAX = 16 };

int cuInit(unsigned);
int cuDeviceGet(int *, int);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(uint64_t *, size_t);
int cuMemFree_v2(uint64_t);

static long lots;
static void *context;
static double *cost[THREADS_MAX];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void must(int status) {
  if (!status) return;
  fprintf(stderr, "CUDA error %d\n", status);
  exit(1);
}

static void *work(void *number) {
  must(cuCtxSetCurrent(context));
  for (long i = -5; i < lots; i++) {
    double begin = now();
    for (int j = 0; j < LOT; j++) {
      uint64_t block;
      must(cuMemAlloc_v2(&block, 1 << 16));
      must(cuMemFree_v2(block));
    }
    if (i >= 0) cost[(uintptr_t)number][i] = (now() - begin) / LOT;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  long threads = atol(argv[1]);
  int device;
  pthread_t id[THREADS_MAX];
  lots = atol(argv[2]) / LOT;
  if (threads < 1 || threads > THREADS_MAX || lots < 1) return 2;
  must(cuInit(0));
  must(cuDeviceGet(&device, 0));
  must(cuDevicePrimaryCtxRetain(&context, device));
  for (long i = 0; i < threads; i++) {
    cost[i] = calloc((size_t)lots, sizeof **cost);
    if (!cost[i] || pthread_create(&id[i], NULL, work, (void *)i)) abort();
  }
  for (long i = 0; i < threads; i++) pthread_join(id[i], NULL);
  for (long i = 0; i < threads; i++)
    for (long j = 0; j < lots; j++) printf("%.2f\n", cost[i][j]);
  return 0;
}
