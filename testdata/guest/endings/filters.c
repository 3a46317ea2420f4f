/* Programs that filter their own system calls, and are killed for one. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "endings.h"

/* Answers both calls with an action. */
static void forbid(unsigned first, unsigned second, unsigned action, unsigned flags) {
  struct sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 1, 0),
                                  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1), BPF_STMT(BPF_RET | BPF_K, action),
                                  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog filter = {sizeof program / sizeof *program, program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter))
    printf("no filter\n");
}

static int allocate_a_while(void) {
  for (int i = 0; i < 10; i++) {
    allocate(1000);
    usleep(1000);
  }
  printf("ok\n");
  return 0;
}

static int strict(void) {
  begin();
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
  if (write(1, "in\n", 3) == 3) syscall(SYS_exit, 0);
  return 1;
}

/* In strict mode any other call kills the thread that makes it, and the process ends with its last one: its parent saw
 * status 0, where a kill was due. */
static int strict_and_killed(void) {
  begin();
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
  syscall(SYS_getppid);
  return 0;
}

static int killed_thread(void) {
  begin();
  forbid(SYS_getppid, SYS_getppid, SECCOMP_RET_KILL_THREAD, 0);
  syscall(SYS_getppid);
  return 0;
}

/* Long enough for a helper thread to see that the first thread is gone, and this one is not. */
static void *allocate_then_end(void *unused) {
  (void)unused;
  sleep(2);
  if (write(1, "last\n", 5) != 5) return NULL;
  return NULL;
}

/* The first one is killed, another goes on and ends. */
static int killed_first_of_two(void) {
  pthread_t thread;
  begin();
  pthread_create(&thread, NULL, allocate_then_end, NULL);
  return killed_thread();
}

static int killed_process(void) {
  begin();
  forbid(SYS_getppid, SYS_getppid, SECCOMP_RET_KILL_PROCESS, 0);
  syscall(SYS_getppid);
  return 0;
}

static int trapped(void) {
  begin();
  forbid(SYS_getppid, SYS_getppid, SECCOMP_RET_TRAP, 0);
  syscall(SYS_getppid);
  return 0;
}

static int no_opening_later(void) {
  begin();
  forbid(SYS_openat, SYS_unlinkat, SECCOMP_RET_ERRNO | EPERM, 0);
  return allocate_a_while();
}

static int no_opening_for_all(void) {
  begin();
  forbid(SYS_openat, SYS_unlinkat, SECCOMP_RET_ERRNO | EPERM, SECCOMP_FILTER_FLAG_TSYNC);
  return allocate_a_while();
}

static int no_opening(void) {
  forbid(SYS_openat, SYS_unlinkat, SECCOMP_RET_ERRNO | EPERM, 0);
  start_cuda();
  return allocate_a_while();
}

const struct mode filters[] = {
    {"strict", strict},
    {"strict-killed", strict_and_killed},
    {"killed-thread", killed_thread},
    {"killed-first", killed_first_of_two},
    {"killed-process", killed_process},
    {"trapped", trapped},
    {"no-openat-later", no_opening_later},
    {"no-openat-tsync", no_opening_for_all},
    {"no-openat", no_opening},
    {NULL, NULL},
};
