/* Programs with children, of all the kinds that there are. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endings.h"

#ifndef SYS_clone3
#define SYS_clone3 435
#endif

extern char **environ;

static int status_of(pid_t child) {
  int status = -1;
  waitpid(child, &status, __WALL);
  return status;
}

static int one_after_another(void) {
  start_cuda();
  allocate(100);
  allocate_beside(2);
  int right = 0;
  for (int i = 0; i < 40; i++) {
    pid_t child = fork();
    if (!child) {
      if (i % 2) allocate(20);
      _exit(i % 7);
    }
    int status = status_of(child);
    right += WIFEXITED(status) && WEXITSTATUS(status) == i % 7;
  }
  printf("%d\n", right);
  _exit(0);
}

static int all_at_once(void) {
  pid_t child[30];
  start_cuda();
  allocate(100);
  int right = 0;
  for (int i = 0; i < 30; i++)
    if (!(child[i] = fork())) {
      allocate(0);
      exit(0);
    }
  for (int i = 0; i < 30; i++) right += !status_of(child[i]);
  printf("%d\n", right);
  return 0;
}

static int vfork_and_run(void) {
  start_cuda();
  allocate_beside(4);
  for (int i = 0; i < 50; i++) {
    pid_t child = vfork();
    if (!child) {
      execl("/bin/true", "true", (char *)NULL);
      _exit(1);
    }
    int status = status_of(child);
    if (status) say_end(status);
  }
  printf("done\n");
  _exit(0);
}

static int vfork_and_leave(void) {
  begin();
  for (int i = 0; i < 100; i++) {
    pid_t child = vfork();
    if (!child) _exit(3);
    int status = status_of(child);
    if (WEXITSTATUS(status) != 3) say_end(status);
  }
  allocate(9);
  printf("done\n");
  return 0;
}

static int spawn(void) {
  start_cuda();
  allocate_beside(4);
  for (int i = 0; i < 50; i++) {
    pid_t child;
    char *const arguments[] = {(char *)"true", NULL};
    if (posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ)) printf("no child\n");
    int status = status_of(child);
    if (status) say_end(status);
  }
  printf("done\n");
  _exit(0);
}

static int leave_with_three(void *unused) {
  (void)unused;
  _exit(3);
}

static int clone_shared(void) {
  enum { SIZE = 1 << 20 };
  begin();
  char *stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 20; i++) {
    int status = status_of(clone(leave_with_three, stack + SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
    if (WEXITSTATUS(status) != 3) say_end(status);
  }
  allocate(10);
  printf("done\n");
  return 0;
}

/* Not even the C library knows of these. */
static int clone_raw(void) {
  begin();
  for (int i = 0; i < 20; i++) {
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (!child) {
      allocate(0);
      _exit(3);
    }
    say_end(status_of(child));
  }
  allocate(10);
  return 0;
}

static int clone_newest(void) {
  begin();
  for (int i = 0; i < 20; i++) {
    uint64_t arguments[11] = {[4] = SIGCHLD};
    pid_t child = (pid_t)syscall(SYS_clone3, arguments, sizeof arguments);
    if (!child) syscall(SYS_exit_group, 3);
    say_end(child < 0 ? 0 : status_of(child));
  }
  allocate(10);
  return 0;
}

static int turn_into_service(void) {
  int ends[2];
  begin();
  if (pipe(ends)) return 1;
  pid_t child = fork();
  if (!child) {
    close(ends[0]);
    setsid();
    if (fork()) _exit(0);
    if (chdir("/") || write(ends[1], "d", 1) != 1) _exit(1);
    exit(0);
  }
  close(ends[1]);
  status_of(child);
  char c;
  printf("%zd\n", read(ends[0], &c, 1));
  return 0;
}

static int service_by_the_library(void) {
  int result = daemon(0, 1);
  start_cuda();
  allocate(100);
  printf("daemon %d\n", result);
  return 0;
}

static int ignored_children(void) {
  signal(SIGCHLD, SIG_IGN);
  begin();
  pid_t child = fork();
  if (!child) _exit(0);
  int status, result = waitpid(child, &status, 0);
  printf("%d %d\n", result, errno);
  return 0;
}

static int no_other_children(void) {
  int status;
  begin();
  usleep(50000);
  FILE *file = popen("true", "r");
  printf("%d\n", pclose(file));
  int result = waitpid(-1, &status, WNOHANG);
  printf("%d %d\n", result, errno);
  return 0;
}

static int traced(void) {
  begin();
  pid_t child = fork();
  if (!child) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    _exit(2);
  }
  status_of(child);
  ptrace(PTRACE_CONT, child, NULL, NULL);
  say_end(status_of(child));
  return 0;
}

static int bound_to_parent(void) {
  begin();
  pid_t child = fork();
  if (!child) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(4);
  }
  say_end(status_of(child));
  return 0;
}

const struct mode children[] = {
    {"forks", one_after_another},
    {"forks-parallel", all_at_once},
    {"vfork", vfork_and_run},
    {"vfork-exit", vfork_and_leave},
    {"spawn", spawn},
    {"clone-vm", clone_shared},
    {"clone-raw", clone_raw},
    {"clone3", clone_newest},
    {"daemon", turn_into_service},
    {"daemon3", service_by_the_library},
    {"sigchld", ignored_children},
    {"no-children", no_other_children},
    {"traced", traced},
    {"parent-death", bound_to_parent},
    {NULL, NULL},
};
