/* Programs that give up rights, or leave for another root. Without root's rights the calls fail, and the program says
 * so with and without the library. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
  for (int i = 0; i < 20; i++) {
    allocate(2000);
    usleep(1000);
  }
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

static int setuid_later(void) {
  begin();
  int result = setuid(65534);
  allocate(10000);
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
  int result = unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_FS), status;
  start_cuda();
  allocate(10);
  pid_t child = fork();
  if (!child) {
    if (!result) printf("pid %d\n", getpid());
    exit(0);
  }
  waitpid(child, &status, 0);
  say_end(status);
  return 0;
}

static int not_dumpable(void) {
  prctl(PR_SET_DUMPABLE, 0);
  begin();
  printf("ok\n");
  return 0;
}

const struct mode rights[] = {
    {"chroot-later", chroot_later}, {"chroot", chroot_first}, {"setuid-later", setuid_later}, {"setuid", setuid_first},
    {"seteuid", to_and_fro},        {"own-pids", own_pids},   {"not-dumpable", not_dumpable}, {NULL, NULL},
};
