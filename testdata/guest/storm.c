/* Threads that do nothing but allocate and free, each with so many blocks at once:
 *
 *   storm THREADS EVENTS [BLOCKS [ENDING]]
 *
 * Prints how long that took in seconds, and the moment of the last event (CLOCK_MONOTONIC, ns). EVENTS is the sum over
 * all threads; the frees of what is live at the end are among them. ENDING handler: a signal handler does the same all
 * the while; pthread_exit: the first thread leaves before the others are through. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "cuda.h"

int cuDevicePrimaryCtxRetain(void **context, int device);

#define STACK_BYTES (64u << 10)
#define SIZE_LEAST 1000u
#define SIZES 1000u

static void *context;
static long pairs_each;
static unsigned blocks = 16;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void check(int status, const char *what) {
  if (!status) return;
  fprintf(stderr, "%s: %d\n", what, status);
  _Exit(1);
}

static void *run(void *unused) {
  uint64_t *live = calloc(blocks, sizeof *live);
  check(!live, "calloc");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  for (long i = 0; i < pairs_each; i++) {
    uint64_t *block = &live[i % blocks];
    if (*block) check(cuMemFree_v2(*block), "cuMemFree");
    check(cuMemAlloc_v2(block, SIZE_LEAST + (size_t)i % SIZES), "cuMemAlloc");
  }
  for (unsigned i = 0; i < blocks; i++)
    if (live[i]) check(cuMemFree_v2(live[i]), "cuMemFree");
  free(live);
  return unused;
}

static void on_alarm(int number) {
  uint64_t block;
  (void)number;
  if (!cuMemAlloc_v2(&block, SIZE_LEAST)) cuMemFree_v2(block);
}

static void interrupt_often(void) {
  struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
  const struct itimerval often = {{0, 500}, {0, 500}};
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &often, NULL);
}

static void tell(double begin) {
  double end = now();
  printf("%.6f %.0f\n", (end - begin) / 1e9, end);
  fflush(stdout);
}

static unsigned threads;

static void *join(void *all) {
  for (unsigned i = 0; i < threads; i++) pthread_join(((pthread_t *)all)[i], NULL);
  tell(now());
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  threads = (unsigned)atoi(argv[1]);
  const char *ending = argc > 4 ? argv[4] : "";
  pthread_t *all = calloc(threads, sizeof *all), last;
  pthread_attr_t attributes;
  if (argc > 3) blocks = (unsigned)atoi(argv[3]);
  pairs_each = atol(argv[2]) / threads / 2;
  check(cuInit(0), "cuInit");
  check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  if (!strcmp(ending, "handler")) interrupt_often();
  double begin = now();
  for (unsigned i = 0; i < threads; i++) check(pthread_create(&all[i], &attributes, run, NULL), "pthread_create");
  if (!strcmp(ending, "pthread_exit")) {
    check(pthread_create(&last, &attributes, join, all), "pthread_create");
    pthread_exit(NULL);
  }
  for (unsigned i = 0; i < threads; i++) pthread_join(all[i], NULL);
  tell(begin);
  return 0;
}
