/* Threads, many and small. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "manners.h"

static void *worker(void *context) {
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  allocate(1000, 5);
  return NULL;
}

/* A buffer for each thread that ever was: memory grows with every thread that comes and goes. */
static void come_and_go(void) {
  enum { ROUNDS = 64, AT_ONCE = 16 };
  void *context;
  check(cuInit(0), "cuInit");
  check(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
  for (int round = 0; round < ROUNDS; round++) {
    pthread_t t[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) check(pthread_create(&t[i], NULL, worker, context), "pthread_create");
    for (int i = 0; i < AT_ONCE; i++) pthread_join(t[i], NULL);
  }
}

static void *shared_context;
static void *one_event(void *barrier) {
  uint64_t p;
  if (!cuCtxSetCurrent(shared_context)) cuMemAlloc_v2(&p, 777);
  pthread_barrier_wait(barrier);
  return NULL;
}

/* A recorder's thread-local storage and stack frames come out of every thread's stack: 64 KiB leave no room for a path
 * buffer, and a thousand threads at once no room for large rings. */
static void many_and_small(void) {
  enum { COUNT = 1000 };
  static pthread_t t[COUNT];
  pthread_barrier_t barrier;
  pthread_attr_t small;
  check(cuInit(0), "cuInit");
  check(cuCtxCreate_v2(&shared_context, 0, 0), "cuCtxCreate");
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  pthread_barrier_init(&barrier, NULL, COUNT);
  for (int i = 0; i < COUNT; i++) check(pthread_create(&t[i], &small, one_event, &barrier), "pthread_create");
  for (int i = 0; i < COUNT; i++) pthread_join(t[i], NULL);
}

static void *first_of_all(void *unused) {
  (void)unused;
  begin();
  return NULL;
}

/* The very first call, with which recording starts, on the smallest stack that the C library allows to be useful. */
static void small_start(void) {
  pthread_t t;
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  check(pthread_create(&t, &small, first_of_all, NULL), "pthread_create");
  pthread_join(t, NULL);
}

const struct mode threads[] = {
    {"threads", come_and_go}, {"quiet", many_and_small}, {"small-start", small_start}, {NULL, NULL}};
