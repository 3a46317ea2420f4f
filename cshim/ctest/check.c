#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/config.h"

#define CASE_SECONDS 1500 /* ends a case that hangs, before scripts/test-c.sh does; no measure of speed */

/* Shared with all children. */
static struct {
  uint32_t passed, failed;
} *sums;

static void count(bool passed) { __atomic_add_fetch(passed ? &sums->passed : &sums->failed, 1, __ATOMIC_RELAXED); }

void check_that(bool holds, const char *file, int line, const char *text) {
  count(holds);
  if (!holds) fprintf(stderr, "%s:%d: failed: %s\n", file, line, text);
}

void check_equal(uint64_t have, uint64_t want, const char *file, int line, const char *text) {
  count(have == want);
  if (have != want)
    fprintf(stderr, "%s:%d: %s is %llu, want %llu\n", file, line, text, (unsigned long long)have,
            (unsigned long long)want);
}

void check_text(const char *have, const char *want, const char *file, int line, const char *text) {
  count(!strcmp(have, want));
  if (strcmp(have, want)) fprintf(stderr, "%s:%d: %s is \"%s\", want \"%s\"\n", file, line, text, have, want);
}

void check_skip(const char *why) { fprintf(stderr, "skipped: %s\n", why); }

int check_in_child(void (*run)(void)) {
  int status = -1;
  fflush(NULL);
  pid_t child = fork();
  if (!child) {
    alarm(CASE_SECONDS);
    run();
    fflush(NULL);
    _exit(0);
  }
  waitpid(child, &status, 0);
  return status;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at) {
  (void)s, (void)type, (void)at;
  return remove(path);
}

int check_main(const char *name, const struct check_case *cases, size_t n) {
  char folder[] = "/tmp/ctest.XXXXXX", path[64];
  sums = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (sums == MAP_FAILED || !mkdtemp(folder)) {
    perror("ctest");
    return 2;
  }
  for (size_t i = 0; i < n; i++) {
    snprintf(path, sizeof path, "%s/%zu", folder, i);
    if (mkdir(path, 0700) || chdir(path)) return perror(path), 2;
    uint32_t failed = sums->failed;
    int status = check_in_child(cases[i].run);
    if (status) {
      count(false);
      fprintf(stderr, "%s: %s ended with wait status %#x\n", name, cases[i].name, status);
    }
    if (sums->failed != failed) fprintf(stderr, "%s: %s FAILED\n", name, cases[i].name);
    if (chdir("/")) return 2;
  }
  nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
  printf("%s: %u passed, %u failed\n", name, sums->passed, sums->failed);
  return sums->failed != 0;
}

struct work {
  void (*run)(uint64_t);
  uint64_t number;
  pthread_barrier_t *start;
};

static void *run_work(void *argument) {
  struct work *work = argument;
  pthread_barrier_wait(work->start);
  work->run(work->number);
  return NULL;
}

void check_threads(unsigned n, void (*run)(uint64_t)) {
  pthread_t *threads = calloc(n, sizeof *threads);
  struct work *work = calloc(n, sizeof *work);
  pthread_barrier_t start;
  pthread_barrier_init(&start, NULL, n);
  for (unsigned i = 0; i < n; i++) {
    work[i] = (struct work){run, i, &start};
    int error = pthread_create(&threads[i], NULL, run_work, &work[i]);
    if (error) {
      fprintf(stderr, "pthread_create: %s\n", strerror(error));
      _exit(3);
    }
  }
  for (unsigned i = 0; i < n; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&start);
  free(threads);
  free(work);
}

const char *check_format(const char *format, ...) {
  static char texts[16][8192];
  static unsigned next;
  char *text = texts[next++ % 16];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof texts[0], format, arguments);
  va_end(arguments);
  return text;
}

const char *check_output(const char *name) {
  char folder[4096];
  if (!getcwd(folder, sizeof folder)) abort();
  snprintf(mt_config.output, sizeof mt_config.output, "%s", check_format("%s/%s", folder, name));
  mt_config.log_level = 1;
  return check_format("%s.spool", mt_config.output);
}

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *, int64_t, uint64_t, uint64_t, uint16_t);
void check_free(uint64_t address) {
  _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)address, -512, address, 1, 1);
}

void check_event(uint64_t address) {
  _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)address, 512, address, 1, 1);
}
