/* Many threads, short ones, small ones, cancelled ones. */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "endings.h"

static void *allocate_some(void *unused) {
  (void)unused;
  allocate(200);
  return NULL;
}

static int many(void) {
  enum { COUNT = 300 };
  pthread_t thread[COUNT];
  start_cuda();
  int made = 0;
  for (int i = 0; i < COUNT; i++) made += !pthread_create(&thread[made], NULL, allocate_some, NULL);
  for (int i = 0; i < made; i++) pthread_join(thread[i], NULL);
  printf("%d\n", made);
  return 0;
}

static void *one_block(void *unused) {
  (void)unused;
  allocate(1);
  return NULL;
}

static int tiny(void) {
  pthread_attr_t attributes;
  int ran = 0;
  start_cuda();
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN + 8192);
  for (int i = 0; i < 50; i++) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, one_block, NULL)) continue;
    pthread_join(thread, NULL);
    ran++;
  }
  printf("%d\n", ran);
  return 0;
}

static void *compute(void *unused) {
  (void)unused;
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  for (volatile long i = 0;; i++) continue;
  return NULL;
}

static void *allocate_until_cancelled(void *unused) {
  (void)unused;
  for (;;) {
    allocate(10);
    pthread_testcancel();
  }
  return NULL;
}

static int cancel(void *(*run)(void *)) {
  start_cuda();
  for (int i = 0; i < 30; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, run, NULL);
    usleep(400);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
  }
  allocate(10);
  printf("ok\n");
  return 0;
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
    {"threads", many},
    {"tiny-threads", tiny},
    {"cancel", cancelled},
    {"cancel-between", cancelled_between},
    {"sched-fifo", real_time},
    {"affinity", one_processor},
    {NULL, NULL},
};
