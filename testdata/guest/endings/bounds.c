/* Limits that a program sets itself, before it uses CUDA and after. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "endings.h"

static void set(int resource, rlim_t value) { setrlimit((unsigned)resource, &(struct rlimit){value, value}); }

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

/* Whether standard error, where it is a file, has words of the library's. */
static bool is_said(const char *words) {
  static char text[4096];
  ssize_t n = pread(STDERR_FILENO, text, sizeof text - 1, 0);
  return n > 0 && strstr(text, words);
}

/* Nobody sees it coming, and what the Go half wants next it does not get: the program works on until it has said so,
 * within reason. What is printed does not depend on when that is. */
static int no_space_at_all(void) {
  struct rlimit none = {1 << 20, 1 << 20};
  begin();
  await_recorder();
  bool recorded = is_recorded();
  syscall(SYS_prlimit64, 0, RLIMIT_AS, &none, NULL);
  syscall(SYS_prlimit64, 0, RLIMIT_DATA, &none, NULL);
  for (int i = 0; i < 5000000 && (i < 1000 || (recorded && !is_said("could not go on"))); i++) cuMemFree_v2(12345);
  return ok();
}

/* All descriptors but the library's are to be had, to the last. What somebody else holds for a moment comes back. */
static int all_descriptors(void) {
  int last = -1, fd;
  set(RLIMIT_NOFILE, 64);
  start_cuda();
  await_recorder();
  while (last < 63)
    while ((fd = open("/dev/null", O_RDONLY)) >= 0) last = fd;
  printf("last descriptor %d, then %s\n", last, strerror(errno));
  take(OWN_SIZE, 20000);
  return 0;
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

/* A write ends in the middle: at FSIZE bytes. */
static int small_files_later(void) {
  rlim_t size = getenv("FSIZE") ? (rlim_t)atol(getenv("FSIZE")) : 30000;
  begin();
  set(RLIMIT_FSIZE, size);
  allocate(20000);
  allocate(20000);
  await_cut((off_t)size);
  allocate(20000);
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

static void have_no_threads(void) {
  if (setgid(65534) || setuid(65534)) printf("setuid\n"); /* root has no such limit */
  set(RLIMIT_NPROC, 1);
}

/* A helper that counts on a thread is waited for at the end. */
static int no_threads(void) {
  have_no_threads();
  start_cuda();
  allocate(100);
  return ok();
}

/* A runtime that wants one more thread ends the process ("pthread_create failed"). The drainer made its threads behind
 * the head of the trace: a program that waited for that one took them away. */
static int no_threads_later(void) {
  begin();
  await_recorder();
  have_no_threads();
  take(OWN_SIZE, 50000);
  work_until_flush();
  take(OWN_SIZE, 50000);
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
  await_recorder();
  printf("%d, %s\n", result, resident_mib() - before < 64 ? "little more" : "much more");
  return 0;
}

const struct mode bounds[] = {
    {"as", little_space},
    {"as-later", little_space_later},
    {"data-later", little_data_later},
    {"nothing-later", no_space_at_all},
    {"nofile-all", all_descriptors},
    {"nofile", few_descriptors},
    {"nofile-later", no_descriptors_later},
    {"fsize", small_files},
    {"fsize-0", no_files},
    {"fsize-later", small_files_later},
    {"fsize-later-ignored", small_files_later_ignored},
    {"stack", small_stacks},
    {"nproc", no_threads},
    {"nproc-later", no_threads_later},
    {"memlock", nothing_locked},
    {"mlockall", all_locked},
    {NULL, NULL},
};
