/* Programs that filter their own system calls: a call that the program does not make may end it. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "endings.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* Answers the calls, a list that ends with 0, with an action, and lets all others pass. */
static void forbid(const unsigned *calls, unsigned action, unsigned flags) {
  struct sock_filter program[128], *p = program;
  unsigned char count = 0;
  while (calls[count]) count++;
  *p++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (unsigned char i = 0; i < count; i++)
    *p++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], (unsigned char)(count - i), 0);
  *p++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  *p++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
  struct sock_fprog filter = {(unsigned short)(p - program), program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter))
    printf("no filter\n");
}

static const unsigned harmless[] = {SYS_getppid, 0}, opening[] = {SYS_openat, SYS_unlinkat, 0};
static const unsigned new_threads[] = {SYS_clone,       SYS_clone3,     SYS_fork,        SYS_vfork,  SYS_unshare,
                                       SYS_close_range, SYS_pidfd_open, SYS_pidfd_getfd, SYS_execve, 0};

static int begin_filtered(void) {
  begin();
  allocate(10000);
  return ok();
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
  forbid(harmless, SECCOMP_RET_KILL_THREAD, 0);
  syscall(SYS_getppid);
  return 0;
}

/* Goes on for twice as long as the library takes to look whether the first thread is gone, and this one is not. A
 * machine that is slow makes that less, never another result. */
static void *go_on(void *unused) {
  (void)unused;
  await_state(getpid(), 'Z');
  sleep(1);
  if (write(1, "last\n", 5) != 5) return NULL;
  return NULL;
}

/* The first one is killed, another goes on and ends. */
static int killed_first_of_two(void) {
  pthread_t thread;
  begin();
  pthread_create(&thread, NULL, go_on, NULL);
  forbid(harmless, SECCOMP_RET_KILL_THREAD, 0);
  syscall(SYS_getppid);
  return 0;
}

static int killed_process(void) {
  begin();
  forbid(harmless, SECCOMP_RET_KILL_PROCESS, 0);
  syscall(SYS_getppid);
  return 0;
}

static int trapped(void) {
  begin();
  forbid(harmless, SECCOMP_RET_TRAP, 0);
  syscall(SYS_getppid);
  return 0;
}

static int no_opening_later(void) {
  begin();
  forbid(opening, SECCOMP_RET_ERRNO | EPERM, 0);
  allocate(10000);
  return ok();
}

static int no_opening_for_all(void) {
  begin();
  forbid(opening, SECCOMP_RET_ERRNO | EPERM, SECCOMP_FILTER_FLAG_TSYNC);
  allocate(10000);
  return ok();
}

static int no_opening(void) {
  forbid(opening, SECCOMP_RET_ERRNO | EPERM, 0);
  return begin_filtered();
}

static int no_threads(void) {
  forbid(new_threads, SECCOMP_RET_ERRNO | EPERM, 0);
  return begin_filtered();
}

static int killed_for_threads(void) {
  forbid(new_threads, SECCOMP_RET_KILL_PROCESS, 0);
  return begin_filtered();
}

/* The filter comes when recording is under way; it holds for the thread that installs it, and its end goes through it.
 */
static int killed_for_threads_later(void) {
  begin();
  await_recorder();
  forbid(new_threads, SECCOMP_RET_KILL_PROCESS, 0);
  allocate(10000);
  return ok();
}

/* Run by one that has the filter already. */
static int run_behind(const unsigned *calls, unsigned action) {
  forbid(calls, action, 0);
  pid_t child = fork();
  if (!child) execl("/proc/self/exe", "endings", "close-from", (char *)NULL);
  say_end(status_of(child));
  return 0;
}

/* What a container's profile does: refuse what is exotic. */
static int run_in_container(void) {
  static const unsigned exotic[] = {SYS_unshare, SYS_pidfd_getfd, SYS_ptrace, SYS_mount, SYS_setns, 0};
  return run_behind(exotic, SECCOMP_RET_ERRNO | EPERM);
}

/* An older container also refuses the call by which descriptors are kept apart. */
static int run_in_old_container(void) {
  setenv("UNDRAINED", "1", 1);
  static const unsigned exotic[] = {SYS_unshare, SYS_close_range, SYS_pidfd_open, SYS_pidfd_getfd, SYS_clone3, 0};
  return run_behind(exotic, SECCOMP_RET_ERRNO | ENOSYS);
}

/* What a service manager's filter does, by default: kill over whole kinds of calls that the program does without. These
 * are systemd's @resources, @memlock, @network-io, @clock, @debug, @keyring, @privileged, @setuid, @chown, @sync and
 * @timer, as far as neither the C library nor the null driver needs them; prlimit64 is one that the C library does. */
static int run_as_service(void) {
  static const unsigned others[] = {
      SYS_ioprio_set, SYS_mbind, SYS_migrate_pages, SYS_move_pages, SYS_sched_setaffinity, SYS_sched_setattr,
      SYS_sched_setparam, SYS_sched_setscheduler, SYS_set_mempolicy, SYS_setpriority, SYS_setrlimit, SYS_mlock,
      SYS_mlock2, SYS_mlockall, SYS_munlock, SYS_munlockall, SYS_socket, SYS_bind, SYS_listen, SYS_accept4, SYS_connect,
      SYS_sendto, SYS_getsockopt, SYS_adjtimex, SYS_clock_adjtime, SYS_clock_settime, SYS_settimeofday,
      SYS_perf_event_open, SYS_ptrace, SYS_add_key, SYS_keyctl, SYS_request_key, SYS_acct, SYS_bpf, SYS_capset,
      SYS_chroot, SYS_pivot_root, SYS_setuid, SYS_setresuid, SYS_setgroups, SYS_chown, SYS_fchown, SYS_fchownat,
      SYS_fsync, SYS_fdatasync, SYS_msync, SYS_sync, SYS_sync_file_range, SYS_alarm, SYS_setitimer, SYS_timer_create,
      SYS_timerfd_create, 0};
  return run_behind(others, SECCOMP_RET_KILL_PROCESS);
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
    {"seccomp-eperm", no_threads},
    {"seccomp-kill", killed_for_threads},
    {"seccomp-kill-later", killed_for_threads_later},
    {"container", run_in_container},
    {"container-old", run_in_old_container},
    {"service", run_as_service},
    {NULL, NULL},
};
