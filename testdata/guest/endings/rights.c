/* Programs that give up rights, or leave for another root. Without root's rights the calls fail, and the program says
 * so with and without the library. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "endings.h"

static int leave_root(void) {
  mkdir("jail", 0755);
  int result = chroot("jail");
  if (chdir("/")) printf("no root\n");
  return result;
}

static int chroot_later(void) {
  begin();
  int result = leave_root();
  take(OWN_SIZE, 40000);
  printf("%d\n", result);
  return 0;
}

static int chroot_first(void) {
  start_cuda();
  int result = leave_root();
  allocate(1000);
  printf("%d\n", result);
  return 0;
}

/* setuid() in a program with threads signals every one of them and waits for all: a thread that blocks that signal
 * hangs the program. */
static int setuid_later(void) {
  begin();
  await_recorder();
  int result = setuid(65534);
  take(OWN_SIZE, 20000);
  printf("%d\n", result);
  return 0;
}

static int setuid_first(void) {
  int result = setuid(65534);
  start_cuda();
  allocate(10000);
  printf("%d\n", result);
  return 0;
}

static int to_and_fro(void) {
  begin();
  int failed = 0;
  for (int i = 0; i < 50; i++) {
    failed += seteuid(65534) != 0;
    allocate(100);
    failed += seteuid(0) != 0;
  }
  printf("%d\n", failed);
  return 0;
}

/* From here on the process can have no more threads: they would be in another namespace than the first. */
static int own_pids(void) {
  int result = unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_FS);
  start_cuda();
  allocate(10);
  pid_t child = fork();
  if (!child) {
    if (!result) printf("pid %d\n", getpid());
    exit(0);
  }
  say_end(status_of(child));
  return 0;
}

static int not_dumpable(void) {
  prctl(PR_SET_DUMPABLE, 0);
  begin();
  return ok();
}

const struct mode rights[] = {
    {"chroot-later", chroot_later}, {"chroot", chroot_first}, {"setuid-later", setuid_later}, {"setuid", setuid_first},
    {"seteuid", to_and_fro},        {"own-pids", own_pids},   {"not-dumpable", not_dumpable}, {NULL, NULL},
};
