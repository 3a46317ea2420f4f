/* Random allocations and frees of every kind in four threads; some are left over at the end. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "cuda.h"

enum { THREADS = 4, STEPS = 3000, LIVE = 64, KINDS = 6 };

static void *context;

/* The head of a physical allocation's properties, padded to what the driver reads: pinned memory of device 0. */
static const int device_memory[16] = {1, 0, 1, 0};

static int make(int kind, size_t size, uint64_t *p) {
  size_t pitch;
  switch (kind) {
    case 0: return cuMemAlloc_v2(p, size);
    case 1: return cuMemAllocManaged(p, size, 1);
    case 2: return cuMemAllocHost_v2((void **)p, size);
    case 3: return cuMemAllocAsync(p, size, NULL);
    case 4: return cuMemCreate(p, (size_t)2 << 20, device_memory, 0);
    default: return cuMemAllocPitch_v2(p, &pitch, size, 3, 4);
  }
}

static int release(int kind, uint64_t p) {
  switch (kind) {
    case 2: return cuMemFreeHost((void *)p);
    case 3: return cuMemFreeAsync(p, NULL);
    case 4: return cuMemRelease(p);
    default: return cuMemFree_v2(p);
  }
}

static void *work(void *number) {
  unsigned seed = (unsigned)(uintptr_t)number * 7919u;
  struct {
    int used, kind;
    uint64_t p;
  } live[LIVE] = {0};
  if (cuCtxSetCurrent(context)) abort();
  for (int i = 0; i < STEPS; i++) {
    int at = rand_r(&seed) % LIVE, kind = rand_r(&seed) % KINDS;
    size_t size = 1 + (size_t)rand_r(&seed) % 100000;
    if (live[at].used && release(live[at].kind, live[at].p)) abort();
    live[at].used = !live[at].used;
    live[at].kind = kind;
    if (live[at].used && make(kind, size, &live[at].p)) abort();
  }
  return NULL;
}

int main(void) {
  pthread_t t[THREADS];
  if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0)) return 1;
  for (long i = 0; i < THREADS; i++)
    if (pthread_create(&t[i], NULL, work, (void *)(i + 1))) return 2;
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  puts("end");
  return 0;
}
