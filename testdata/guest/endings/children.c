/* Programs with children, of all the kinds that there are. A child of a process that uses CUDA is refused what it asks
 * for; none of it may stand in its parent's trace. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
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

/* Refused by a driver that was initialised in the parent, but the hook has seen it. */
static void ask_in_vain(void) {
  uint64_t block;
  cuMemAlloc_v2(&block, OWN_SIZE);
}

/* A lock that another thread holds at the moment of the fork stays held in the child for ever: HAMi-core PR 285 and
 * 155, memray's and every malloc wrapper's. A child that inherits a helper thread's state without the thread waits for
 * it at its exit: golang/go 15538, and every profiler with a writer thread. */
static int one_after_another(void) {
  start_cuda();
  allocate_beside(2);
  int right = 0;
  for (int i = 0; i < 40; i++) {
    pid_t child = fork();
    if (!child) {
      if (i % 2) ask_in_vain();
      if (i % 4 < 2) exit(i % 7);
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
  begin();
  int right = 0;
  for (int i = 0; i < 30; i++)
    if (!(child[i] = fork())) {
      ask_in_vain();
      exit(0);
    }
  for (int i = 0; i < 30; i++) right += !status_of(child[i]);
  printf("%d\n", right);
  return 0;
}

/* A child that is the first to use CUDA records for itself, and its parent, which starts later, for itself. */
static int child_first(void) {
  pid_t child = fork();
  if (!child) {
    start_cuda();
    exit(3);
  }
  say_end(status_of(child));
  begin();
  return 0;
}

static void *first_call(void *shared) {
  pthread_barrier_wait(shared);
  take(OWN_SIZE, 1);
  return NULL;
}

static void start_together(void) {
  enum { COUNT = 8 };
  pthread_t thread[COUNT];
  pthread_barrier_t together;
  pthread_barrier_init(&together, NULL, COUNT);
  make_context();
  for (int i = 0; i < COUNT; i++) pthread_create(&thread[i], NULL, first_call, &together);
  for (int i = 0; i < COUNT; i++) pthread_join(thread[i], NULL);
}

/* Children whose first calls come from several threads at once: a lazy start may happen twice. */
static int race_to_start(void) {
  for (int round = 0; round < 30; round++) {
    pid_t child = fork();
    if (!child) {
      start_together();
      exit(0);
    }
    say_end(status_of(child));
  }
  return 0;
}

/* A hundred processes at once: each has a trace of its own, also under one name. */
static int hundred(void) {
  enum { COUNT = 100 };
  pid_t child[COUNT];
  int right = 0;
  for (int i = 0; i < COUNT; i++)
    if (!(child[i] = fork())) {
      start_cuda();
      exit(0);
    }
  for (int i = 0; i < COUNT; i++) right += !status_of(child[i]);
  printf("%d\n", right);
  return 0;
}

/* A process group that is killed at once, the recorder's helpers with it. */
static int kill_group(void) {
  pid_t child = fork();
  if (!child) {
    setpgid(0, 0);
    begin();
    for (int i = 0; i < 3; i++)
      if (!fork()) {
        ask_in_vain();
        for (;;) pause();
      }
    await_recorder();
    kill(0, SIGKILL);
    for (;;) pause();
  }
  say_end(status_of(child));
  return 0;
}

/* A child of vfork shares our memory: what it does to the recorder's state it does to its parent's. */
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

/* Its _exit must not end its parent's recording. */
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

/* posix_spawn is a vfork with a stack of its own, and all signals blocked. */
static int spawn(void) {
  char *const arguments[] = {(char *)"true", NULL};
  pid_t child;
  start_cuda();
  allocate_beside(4);
  for (int i = 0; i < 50; i++) {
    if (posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ)) printf("no child\n");
    int status = status_of(child);
    if (status) say_end(status);
  }
  printf("%d\n", posix_spawn(&child, "/nothing", NULL, NULL, arguments, environ));
  _exit(0);
}

static int leave_with_three(void *unused) {
  (void)unused;
  _exit(3);
}

static int ask_and_leave(void *unused) {
  ask_in_vain();
  return leave_with_three(unused);
}

/* pthread_atfork handlers do not run for a clone: the C library's with memory of the parent's and with a copy. */
static int clone_by_the_library(void) {
  enum { SIZE = 1 << 20 };
  begin();
  char *stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 20; i++) {
    int status = status_of(i % 2 ? clone(leave_with_three, stack + SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL)
                                 : clone(ask_and_leave, stack + SIZE, SIGCHLD, NULL));
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
    if (!child) ask_and_leave(NULL);
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
  await_recorder();
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
    {"fork-before", child_first},
    {"race", race_to_start},
    {"hundred", hundred},
    {"kill-group", kill_group},
    {"vfork", vfork_and_run},
    {"vfork-exit", vfork_and_leave},
    {"spawn", spawn},
    {"clone", clone_by_the_library},
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
