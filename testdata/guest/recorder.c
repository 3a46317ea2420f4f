/* A traced process without CUDA: threads report framework blocks through the library's own entry, as torch's allocator
 * would.
 *
 *   recorder THREADS EVENTS [linger|kill|fork|churn|hold|hold-kill|abandon]
 *
 * Every event is an allocation at an address that holds the thread and the count, so that a reader can tell what is
 * missing. Committed events are counted in the file named by COUNT (8 bytes a thread, MAP_SHARED), stored after each
 * event. With hold, each thread is inside a free when the process ends, and another event came since; with abandon,
 * each has ended so. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hooks/call.h"

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *, int64_t, uint64_t, uint64_t, uint16_t);
int memtrace_tag_push(const char *);
void memtrace_tag_pop(void);
void memtrace_mark(const char *);
void memtrace_step(uint64_t);

static uint64_t *counts;
static long events;

static void record(uint64_t thread, uint64_t i) {
  _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)((thread << 40) + i + 1), 512, i * 512, 1 << 20, 1);
  if (counts) __atomic_store_n(&counts[thread], i + 1, __ATOMIC_RELEASE);
}

static void *work(void *number) {
  for (long i = 0; i < events; i++) record((uint64_t)number, (uint64_t)i);
  return NULL;
}

static pthread_barrier_t held;
static int stay;

/* Begins a free that does not return. */
static void *hold(void *number) {
  struct mt_frame frame = {0};
  struct mt_call call;
  work(number);
  mt_driver_open(&call, 1, &frame, 1);
  pthread_barrier_wait(&held);
  while (stay) pause();
  return NULL;
}

static void run_holding(long n) {
  pthread_t threads[256];
  pthread_barrier_init(&held, NULL, (unsigned)n + 1);
  for (long i = 0; i < n; i++)
    if (pthread_create(&threads[i], NULL, hold, (void *)(i + 1))) abort();
  pthread_barrier_wait(&held);
  for (long i = 0; i < n && !stay; i++) pthread_join(threads[i], NULL);
  record(0, 2);
}

static void run_threads(long n) {
  pthread_t threads[256];
  for (long i = 0; i < n; i++)
    if (pthread_create(&threads[i], NULL, work, (void *)(i + 1))) abort();
  for (long i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

static void open_counts(void) {
  const char *path = getenv("COUNT");
  if (!path) return;
  int fd = open(path, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096)) abort();
  counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  long threads = atol(argv[1]);
  const char *mode = argc > 3 ? argv[3] : "";
  events = atol(argv[2]);
  open_counts();
  memtrace_tag_push("outer");
  memtrace_tag_push("inner");
  record(0, 0);
  memtrace_tag_pop();
  record(0, 1);
  memtrace_tag_pop();
  memtrace_mark("begin");
  memtrace_step(7);
  if (!strcmp(mode, "fork")) {
    pid_t child = fork();
    if (!child) {
      record(0, 100);
      _exit(0);
    }
    waitpid(child, NULL, 0);
  }
  stay = !strncmp(mode, "hold", 4);
  if (stay || !strcmp(mode, "abandon"))
    run_holding(threads);
  else if (!strcmp(mode, "churn"))
    for (int round = 0; round < 50; round++) run_threads(threads);
  else
    run_threads(threads);
  if (!strcmp(mode, "kill") || !strcmp(mode, "hold-kill")) kill(getpid(), SIGKILL);
  if (!strcmp(mode, "linger")) {
    puts("done");
    fflush(stdout);
    getchar();
  }
  return 0;
}
