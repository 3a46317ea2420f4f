/* Programs that filter their own system calls: a call that the program does not make may end it. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "manners.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* Answers the calls with an action, and lets all others pass. */
static void forbid(const unsigned *calls, unsigned char count, unsigned action) {
  struct sock_filter program[32], *p = program;
  *p++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (unsigned char i = 0; i < count; i++)
    *p++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], (unsigned char)(count - i), 0);
  *p++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  *p++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
  struct sock_fprog filter = {(unsigned short)(p - program), program};
  check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), "seccomp");
}

static const unsigned new_threads[] = {SYS_clone,       SYS_clone3,     SYS_fork,        SYS_vfork, SYS_unshare,
                                       SYS_close_range, SYS_pidfd_open, SYS_pidfd_getfd, SYS_execve};
#define FORBID(list, action) forbid(list, sizeof list / sizeof *list, action)

static void begin_filtered(void) {
  begin();
  let_settle();
  allocate(1000, 100);
}

static void refuse_threads(void) {
  FORBID(new_threads, SECCOMP_RET_ERRNO | EPERM);
  begin_filtered();
}

static void kill_for_threads(void) {
  FORBID(new_threads, SECCOMP_RET_KILL_PROCESS);
  begin_filtered();
}

/* What a container's profile does: refuse what is exotic. The program is run by one that has the filter already. */
static const unsigned exotic[] = {SYS_unshare, SYS_pidfd_getfd, SYS_ptrace, SYS_mount, SYS_setns};
static void run_in_container(void) {
  FORBID(exotic, SECCOMP_RET_ERRNO | EPERM);
  fflush(stdout);
  pid_t child = fork();
  if (!child) execl("/proc/self/exe", "manners", "closefrom", (char *)NULL);
  wait_for(child);
}

/* An older container also refuses the call by which descriptors are kept apart. */
static const unsigned exotic_then[] = {SYS_unshare, SYS_close_range, SYS_pidfd_open, SYS_pidfd_getfd, SYS_clone3};
static void run_in_old_container(void) {
  FORBID(exotic_then, SECCOMP_RET_ERRNO | ENOSYS);
  fflush(stdout);
  pid_t child = fork();
  if (!child) execl("/proc/self/exe", "manners", "closefrom", (char *)NULL);
  wait_for(child);
}

/* The filter comes when recording is under way; it holds for the thread that installs it, and its end goes through it.
 */
static void kill_later(void) {
  begin();
  let_settle();
  FORBID(new_threads, SECCOMP_RET_KILL_PROCESS);
  allocate(1000, 20000);
}

const struct mode filters[] = {
    {"seccomp-eperm", refuse_threads}, {"seccomp-kill", kill_for_threads},         {"seccomp-kill-later", kill_later},
    {"container", run_in_container},   {"container-old", run_in_old_container},    {NULL, NULL},
};
