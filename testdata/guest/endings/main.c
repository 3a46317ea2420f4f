#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endings.h"

static void *context;

void make_context(void) {
  if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0)) printf("no device\n");
}

void start_cuda(void) {
  make_context();
  take(FIRST_SIZE, 100);
}

void take(size_t size, int times) {
  uint64_t block;
  cuCtxSetCurrent(context);
  for (int i = 0; i < times; i++)
    if (cuMemAlloc_v2(&block, size)) printf("refused\n");
    else cuMemFree_v2(block);
}

void allocate(int times) {
  cuCtxSetCurrent(context);
  for (int i = 0; i < times; i++) {
    uint64_t block;
    if (cuMemAlloc_v2(&block, 1000 + (size_t)i)) printf("refused\n");
    else if (i & 1) cuMemFree_v2(block);
  }
}

static int at_work;

static void *allocate_on(void *unused) {
  (void)unused;
  allocate(100);
  __atomic_add_fetch(&at_work, 1, __ATOMIC_RELAXED);
  for (;;) allocate(100);
  return NULL;
}

void allocate_beside(int count) {
  pthread_t thread;
  int made = 0;
  for (int i = 0; i < count; i++) made += !pthread_create(&thread, NULL, allocate_on, NULL);
  while (__atomic_load_n(&at_work, __ATOMIC_RELAXED) < made) sched_yield();
}

void say_end(int status) {
  if (WIFEXITED(status)) printf("exit %d\n", WEXITSTATUS(status));
  else printf("signal %d\n", WTERMSIG(status));
}

int status_of(pid_t child) {
  int status = -1;
  waitpid(child, &status, __WALL);
  return status;
}

void begin(void) {
  start_cuda();
  allocate(10);
}

void on_thread(void *(*run)(void *)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, NULL)) printf("no thread\n");
  else pthread_join(thread, NULL);
}

static int deeper(volatile char *above, int depth) {
  volatile char frame[4096];
  frame[0] = (char)depth;
  return depth < 0 ? 0 : deeper(frame, depth + 1) + above[0];
}

int overflow_stack(void) {
  volatile char first = 0;
  return deeper(&first, 0);
}

int ok(void) {
  printf("ok\n");
  return 0;
}

int main(int argc, char **argv) {
  static const struct mode *const families[] = {crashes, leavings, successors, children, descriptors, bounds,
                                                rights,  filters,  timers,     threads,  odds,        unwindings};
  setvbuf(stdout, NULL, _IONBF, 0);
  for (size_t i = 0; i < sizeof families / sizeof *families; i++)
    for (const struct mode *mode = families[i]; mode->name; mode++) {
      if (argc > 1 && !strcmp(argv[1], mode->name)) return mode->run();
      if (argc == 1) printf("%s\n", mode->name);
    }
  return argc == 1 ? 0 : 99;
}
