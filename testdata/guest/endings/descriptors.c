/* What programs do with descriptors, and with the folder they stand in. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "endings.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static int next_descriptor(void) { return open("/dev/null", O_RDONLY); }

static int close_all(void) {
  begin();
  for (int fd = 3; fd < 1024; fd++) close(fd);
  allocate(1000);
  printf("%d\n", next_descriptor());
  allocate(10);
  return 0;
}

static int close_range_call(void) {
  begin();
  syscall(SYS_close_range, 3, ~0u, 0);
  allocate(1000);
  printf("%d\n", next_descriptor());
  allocate(10);
  return 0;
}

static int lowest_stays(void) {
  int before = next_descriptor();
  begin();
  printf("%d %d\n", before, next_descriptor() - before);
  return 0;
}

static int own_table(void) {
  begin();
  printf("%d\n", unshare(CLONE_FILES));
  allocate(100);
  return 0;
}

static int full_stderr(void) {
  dup2(open("/dev/full", O_WRONLY), 2);
  begin();
  printf("ok\n");
  return 0;
}

static int broken_stderr(void) {
  int ends[2];
  if (pipe(ends)) return 1;
  close(ends[0]);
  dup2(ends[1], 2);
  begin();
  printf("ok\n");
  return 0;
}

static int any_mode(void) {
  umask(0);
  begin();
  return 0;
}

static int folder_is_gone(void) {
  if (mkdir("gone", 0755) || chdir("gone") || rmdir("../gone")) printf("no folder\n");
  begin();
  printf("ok\n");
  return 0;
}

static int no_environment(void) {
  clearenv();
  begin();
  printf("ok\n");
  return 0;
}

const struct mode descriptors[] = {
    {"close-all", close_all},
    {"close-range", close_range_call},
    {"lowest", lowest_stays},
    {"own-table", own_table},
    {"full-stderr", full_stderr},
    {"broken-stderr", broken_stderr},
    {"umask", any_mode},
    {"gone", folder_is_gone},
    {"no-environment", no_environment},
    {NULL, NULL},
};
