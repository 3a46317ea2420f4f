/* Allocates without end in so many threads, until it is killed or its input ends:  busy THREADS [PAUSE_US]. The file
 * "count" holds what each thread has made, 8 bytes each, stored after the call: what it says must be in the trace,
 * whatever becomes of the process. Thread number i asks for 1000 + i bytes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda.h"

enum { MOST = 64, BURST = 50 };

static uint64_t *counts;
static void *context;
static useconds_t rest;
static uint32_t over;

static void *work(void *number) {
  uint64_t i = (uint64_t)number, p;
  if (cuCtxSetCurrent(context)) abort();
  while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
    for (int burst = 0; burst < BURST; burst++) {
      if (cuMemAlloc_v2(&p, 1000 + i)) abort();
      __atomic_store_n(&counts[i], counts[i] + 1, __ATOMIC_RELEASE);
      if (cuMemFree_v2(p)) abort();
    }
    if (rest) usleep(rest);
  }
  return NULL;
}

int main(int argc, char **argv) {
  long threads = argc > 1 ? atol(argv[1]) : 1;
  pthread_t t[MOST];
  rest = argc > 2 ? (useconds_t)atol(argv[2]) : 0;
  int fd = open("count", O_RDWR | O_CREAT, 0600);
  if (threads < 1 || threads > MOST || fd < 0 || ftruncate(fd, 4096)) return 2;
  counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (counts == MAP_FAILED || cuInit(0) || cuCtxCreate_v2(&context, 0, 0)) return 3;
  for (long i = 0; i < threads; i++)
    if (pthread_create(&t[i], NULL, work, (void *)i)) return 4;
  struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
  poll(&in, 1, -1);
  __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
  for (long i = 0; i < threads; i++) pthread_join(t[i], NULL);
  return 0;
}
