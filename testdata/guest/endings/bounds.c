/* Limits that a program sets itself, before it uses CUDA and after. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "endings.h"

static void set(int resource, rlim_t value) { setrlimit((unsigned)resource, &(struct rlimit){value, value}); }

static int ok(void) {
  printf("ok\n");
  return 0;
}

static int little_space(void) {
  set(RLIMIT_AS, 3ull << 30);
  start_cuda();
  allocate(100);
  return ok();
}

/* All of the program's allocations failed, since the recorder had reserved more than the limit, and the Go runtime
 * ended the process. */
static int little_space_later(void) {
  struct rlimit limit;
  begin();
  set(RLIMIT_AS, 256ull << 20);
  allocate(20000);
  getrlimit(RLIMIT_AS, &limit);
  printf("%llu %llu\n", (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
  return ok();
}

static int little_data_later(void) {
  struct rlimit limit, old;
  begin();
  prlimit(0, RLIMIT_DATA, &(struct rlimit){48ull << 20, 64ull << 20}, NULL);
  allocate(2000);
  limit = (struct rlimit){32ull << 20, 40ull << 20};
  prlimit(getpid(), RLIMIT_DATA, &limit, &old);
  printf("%llu %llu\n", (unsigned long long)old.rlim_cur, (unsigned long long)old.rlim_max);
  printf("%d\n", setrlimit(RLIMIT_DATA, &(struct rlimit){3, 2}) ? errno : 0);
  return ok();
}

static bool is_trace_begun(void) {
  glob_t traces;
  struct stat file;
  bool begun = !glob("memtrace.*.bin", 0, NULL, &traces) && !stat(traces.gl_pathv[0], &file) && file.st_size;
  globfree(&traces);
  return begun;
}

/* Where there is a recorder, its Go half writes the head of the trace when it is up. */
static void await_recorder(void) {
  const char *preloaded = getenv("LD_PRELOAD");
  if (!preloaded || !strstr(preloaded, "libmemtrace")) return;
  for (int i = 0; i < 3000 && !is_trace_begun(); i++) usleep(10000);
}

/* Nobody sees it coming, and what the Go half wants next it does not get. What is printed does not depend on when that
 * is. */
static int no_space_at_all(void) {
  struct rlimit none = {1 << 20, 1 << 20};
  begin();
  await_recorder();
  syscall(SYS_prlimit64, 0, RLIMIT_AS, &none, NULL);
  syscall(SYS_prlimit64, 0, RLIMIT_DATA, &none, NULL);
  for (int i = 0; i < 200000; i++) cuMemFree_v2(12345);
  usleep(300000);
  return ok();
}

static int few_descriptors(void) {
  set(RLIMIT_NOFILE, 12);
  start_cuda();
  allocate(1000);
  return ok();
}

static int no_descriptors_later(void) {
  begin();
  set(RLIMIT_NOFILE, 0);
  allocate(10000);
  return ok();
}

static int no_files(void) {
  set(RLIMIT_FSIZE, 0);
  start_cuda();
  allocate(3000);
  return ok();
}

static int small_files(void) {
  set(RLIMIT_FSIZE, 4096);
  start_cuda();
  allocate(3000);
  return ok();
}

static int small_files_later(void) {
  begin();
  set(RLIMIT_FSIZE, 100000);
  for (int i = 0; i < 5; i++) {
    allocate(20000);
    usleep(20000);
  }
  return ok();
}

static int small_files_later_ignored(void) {
  signal(SIGXFSZ, SIG_IGN);
  return small_files_later();
}

static void *allocate_some(void *unused) {
  (void)unused;
  allocate(100);
  return NULL;
}

static int small_stacks(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  set(RLIMIT_STACK, 64 << 10);
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 32768);
  start_cuda();
  if (!pthread_create(&thread, &attributes, allocate_some, NULL)) pthread_join(thread, NULL);
  return ok();
}

static int no_threads(void) {
  set(RLIMIT_NPROC, 1);
  start_cuda();
  allocate(100);
  return ok();
}

static int nothing_locked(void) {
  set(RLIMIT_MEMLOCK, 0);
  mlockall(MCL_CURRENT | MCL_FUTURE);
  start_cuda();
  allocate(100);
  return ok();
}

static long resident_mib(void) {
  char line[256];
  long kib = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status)) sscanf(line, "VmRSS: %ld", &kib);
  if (status) fclose(status);
  return kib >> 10;
}

/* Locked memory has all its pages from the moment that it is mapped. */
static int all_locked(void) {
  int result = mlockall(MCL_CURRENT | MCL_FUTURE);
  long before = resident_mib();
  start_cuda();
  allocate(100);
  usleep(100000);
  printf("%d, %s\n", result, resident_mib() - before < 64 ? "little more" : "much more");
  return 0;
}

const struct mode bounds[] = {
    {"as", little_space},
    {"as-later", little_space_later},
    {"data-later", little_data_later},
    {"nothing-later", no_space_at_all},
    {"nofile", few_descriptors},
    {"nofile-later", no_descriptors_later},
    {"fsize", small_files},
    {"fsize-0", no_files},
    {"fsize-later", small_files_later},
    {"fsize-later-ignored", small_files_later_ignored},
    {"stack", small_stacks},
    {"nproc", no_threads},
    {"memlock", nothing_locked},
    {"mlockall", all_locked},
    {NULL, NULL},
};
