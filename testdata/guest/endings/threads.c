/* Many threads, short ones, small ones, cancelled ones. */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "endings.h"

static void *take_some(void *unused) {
  (void)unused;
  take(OWN_SIZE, 5);
  return NULL;
}

/* A buffer for each thread that ever was: memory grows with every thread that comes and goes. */
static int come_and_go(void) {
  enum { ROUNDS = 64, AT_ONCE = 16 };
  pthread_t thread[AT_ONCE];
  start_cuda();
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < AT_ONCE; i++)
      if (pthread_create(&thread[i], NULL, take_some, NULL)) return 1;
    for (int i = 0; i < AT_ONCE; i++) pthread_join(thread[i], NULL);
  }
  return ok();
}

static void *take_one(void *barrier) {
  take(OWN_SIZE, 1);
  pthread_barrier_wait(barrier);
  return NULL;
}

static int on_small_stacks(size_t size, int count, void *(*run)(void *), void *argument) {
  pthread_attr_t attributes;
  pthread_t thread[1000];
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size);
  for (int i = 0; i < count; i++)
    if (pthread_create(&thread[i], &attributes, run, argument)) return 1;
  for (int i = 0; i < count; i++) pthread_join(thread[i], NULL);
  return 0;
}

/* A recorder's thread-local storage and stack frames come out of every thread's stack: 64 KiB leave no room for a path
 * buffer, and a thousand threads at once no room for large rings. */
static int thousand(void) {
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, NULL, 1000);
  start_cuda();
  return on_small_stacks(64 << 10, 1000, take_one, &barrier);
}

static void *begin_there(void *unused) {
  begin();
  return unused;
}

/* The very first call, with which recording starts, on the smallest stack that the C library allows to be useful. */
static int small_start(void) { return on_small_stacks(64 << 10, 1, begin_there, NULL); }

static void *one_block(void *unused) {
  (void)unused;
  allocate(1);
  return NULL;
}

static int tiny(void) {
  int result = 0;
  start_cuda();
  for (int i = 0; i < 50; i++) result |= on_small_stacks(PTHREAD_STACK_MIN + 8192, 1, one_block, NULL);
  return result;
}

static int begun; /* threads that are on their way */

static void *compute(void *unused) {
  (void)unused;
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  __atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
  for (volatile long i = 0;; i++) continue;
  return NULL;
}

static void *allocate_until_cancelled(void *unused) {
  (void)unused;
  for (int i = 0;; i++) {
    allocate(10);
    if (!i) __atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
    pthread_testcancel();
  }
  return NULL;
}

static int cancel(void *(*run)(void *)) {
  start_cuda();
  for (int i = 0; i < 30; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, run, NULL);
    while (__atomic_load_n(&begun, __ATOMIC_RELAXED) <= i) sched_yield();
    pthread_cancel(thread);
    pthread_join(thread, NULL);
  }
  allocate(10);
  return ok();
}

static int cancelled(void) { return cancel(compute); }
static int cancelled_between(void) { return cancel(allocate_until_cancelled); }

static int real_time(void) {
  start_cuda();
  int result = sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 10});
  for (int i = 0; i < 30; i++) allocate(1000);
  printf("%d\n", result);
  return 0;
}

static int one_processor(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  sched_setaffinity(0, sizeof set, &set);
  start_cuda();
  for (int i = 0; i < 30; i++) allocate(1000);
  sched_getaffinity(0, sizeof set, &set);
  printf("%d\n", CPU_COUNT(&set));
  return 0;
}

const struct mode threads[] = {
    {"threads", come_and_go},
    {"thousand", thousand},
    {"small-start", small_start},
    {"tiny-threads", tiny},
    {"cancel", cancelled},
    {"cancel-between", cancelled_between},
    {"sched-fifo", real_time},
    {"affinity", one_processor},
    {NULL, NULL},
};
