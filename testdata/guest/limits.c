/* Limits on what a process may have. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "manners.h"

static void no_descriptors(void) {
  struct rlimit limit = {64, 64};
  setrlimit(RLIMIT_NOFILE, &limit);
  start_cuda();
  int last = -1, fd, error = 0;
  for (int i = 0; i < 20; i++) { /* a thread of the driver's, or of whoever watches it, may hold some for a moment */
    while ((fd = open("/dev/null", O_RDONLY)) >= 0) last = fd;
    error = errno;
    usleep(10000);
  }
  printf("last descriptor %d, then %s\n", last, strerror(error));
  allocate(1000, 20000);
}

/* They run out while a recording goes on. */
static void no_descriptors_later(void) {
  struct rlimit limit = {64, 64};
  begin();
  let_settle();
  setrlimit(RLIMIT_NOFILE, &limit);
  while (open("/dev/null", O_RDONLY) >= 0) {
  }
  allocate(1000, 20000);
  closefrom(3);
}

/* A write beyond the limit is SIGXFSZ, in whatever thread does it. */
static void file_size(void) {
  struct rlimit limit = {300 << 10, 300 << 10};
  start_cuda();
  setrlimit(RLIMIT_FSIZE, &limit);
  allocate(1000, 20000);
}

/* A write that ends in the middle: at FSIZE bytes. */
static void file_size_later(void) {
  rlim_t size = getenv("FSIZE") ? (rlim_t)atol(getenv("FSIZE")) : 64 << 10;
  struct rlimit limit = {size, size};
  begin();
  setrlimit(RLIMIT_FSIZE, &limit);
  for (int i = 0; i < 5; i++) {
    allocate(1000 + (size_t)i, 8000);
    usleep(60000);
  }
}

/* No more threads may be made: a helper that counts on one waits for it at the end. */
static void no_threads(void) {
  struct rlimit limit = {1, 1};
  if (setgid(65534) || setuid(65534)) printf("setuid\n"); /* root has no such limit */
  setrlimit(RLIMIT_NPROC, &limit);
  begin();
}

/* The limit is reached later: a runtime that then wants one more thread ends the process ("pthread_create failed"). */
static void no_threads_later(void) {
  struct rlimit limit = {1, 1};
  begin();
  let_settle();
  if (setgid(65534) || setuid(65534)) printf("setuid\n");
  setrlimit(RLIMIT_NPROC, &limit);
  for (int i = 0; i < 10; i++) {
    allocate(1000 + (size_t)i, 20000);
    usleep(20000);
  }
}

static void no_environment(void) {
  clearenv();
  begin();
}

const struct mode limits[] = {
    {"nofile", no_descriptors},   {"nofile-later", no_descriptors_later},
    {"fsize", file_size},         {"fsize-later", file_size_later},
    {"nproc", no_threads},        {"nproc-later", no_threads_later},
    {"clearenv", no_environment}, {NULL, NULL},
};
