/* Children of every kind. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "manners.h"

extern char **environ;

static void child_uses_cuda(void) {
  start_cuda();
  allocate(2000, 10);
  fflush(stdout);
}

/* A child that is the first to use CUDA records for itself, and its parent, which starts later, for itself. */
static void fork_before(void) {
  pid_t child = fork();
  if (!child) {
    child_uses_cuda();
    exit(3);
  }
  wait_for(child);
  begin();
}

/* A child that inherits a helper thread's state without the thread waits for it at its exit: golang/go 15538, and every
 * profiler with a writer thread. */
static void fork_after(void) {
  begin();
  for (int i = 0; i < 5; i++) {
    pid_t child = fork();
    if (!child) _exit(i);
    wait_for(child);
  }
  pid_t child = fork(); /* what a server's worker does: work, leave by exit() with the parent's atexit handlers */
  if (!child) exit(7);
  wait_for(child);
  allocate(1000, 100);
}

/* A child's event written to the parent's file: two processes number their events alike. */
static void fork_calls(void) {
  begin();
  for (int i = 0; i < 20; i++) {
    pid_t child = fork();
    if (!child) {
      uint64_t p;
      cuMemAlloc_v2(&p, 3000); /* refused by a driver that was initialised in the parent, but the hook has seen it */
      exit(0);
    }
    wait_for(child);
  }
}

static void *busy_context;
static int busy_stop;
static void *allocate_on(void *unused) {
  (void)unused;
  check(cuCtxSetCurrent(busy_context), "cuCtxSetCurrent");
  while (!__atomic_load_n(&busy_stop, __ATOMIC_RELAXED)) allocate(500, 10);
  return NULL;
}

static void *fork_often(void *unused) {
  (void)unused;
  for (int i = 0; i < 10; i++) {
    int status = 0;
    pid_t child = fork();
    if (!child) {
      if (i % 2) exit(0);
      _exit(0);
    }
    if (waitpid(child, &status, 0) != child || status) printf("child ended with %#x\n", status);
  }
  return NULL;
}

/* A lock that another thread holds at the moment of the fork stays held in the child for ever: HAMi-core PR 285 and
 * 155, memray's and every malloc wrapper's. */
static void fork_busy(void) {
  enum { BUSY = 4, FORKING = 3 };
  pthread_t busy[BUSY], forking[FORKING];
  check(cuInit(0), "cuInit");
  check(cuCtxCreate_v2(&busy_context, 0, 0), "cuCtxCreate");
  allocate(1000, 100);
  for (int i = 0; i < BUSY; i++) check(pthread_create(&busy[i], NULL, allocate_on, NULL), "pthread_create");
  for (int i = 0; i < FORKING; i++) check(pthread_create(&forking[i], NULL, fork_often, NULL), "pthread_create");
  for (int i = 0; i < FORKING; i++) pthread_join(forking[i], NULL);
  __atomic_store_n(&busy_stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < BUSY; i++) pthread_join(busy[i], NULL);
}

/* A child of vfork shares our memory: what it does to the recorder's state it does to its parent's. */
static void vfork_exec(void) {
  begin();
  pid_t child = vfork();
  if (!child) {
    execl("/bin/true", "true", (char *)NULL);
    _exit(127);
  }
  wait_for(child);
  allocate(1000, 100);
}

/* Its _exit must not end its parent's recording. */
static void vfork_leave(void) {
  begin();
  for (int i = 0; i < 3; i++) {
    pid_t child = vfork();
    if (!child) _exit(i);
    wait_for(child);
    allocate(1000, 100);
  }
}

/* posix_spawn is a vfork with a stack of its own, and all signals blocked. */
static void spawn(void) {
  begin();
  pid_t child;
  check(posix_spawn(&child, "/bin/sh", NULL, NULL, (char *[]){"sh", "-c", "exit 5", NULL}, environ), "posix_spawn");
  wait_for(child);
  if (posix_spawn(&child, "/nothing", NULL, NULL, (char *[]){"nothing", NULL}, environ) != ENOENT)
    printf("it was there\n");
  allocate(1000, 100);
}

static int cloned(void *unused) {
  (void)unused;
  uint64_t p;
  cuMemAlloc_v2(&p, 3000);
  return 5;
}

/* pthread_atfork handlers do not run for a raw clone. */
static void raw_clone(void) {
  begin();
  static char stack[256 << 10] __attribute__((aligned(16)));
  wait_for(clone(cloned, stack + sizeof stack, SIGCHLD, NULL)); /* a copy of the process, behind the C library's back */
  long child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
  if (!child) _exit(cloned(NULL));
  wait_for((pid_t)child);
  allocate(1000, 100);
}

static void *first_call(void *argument) {
  void **shared = argument;
  uint64_t p;
  pthread_barrier_wait(shared[1]);
  check(cuCtxSetCurrent(shared[0]), "cuCtxSetCurrent");
  check(cuMemAlloc_v2(&p, 888), "cuMemAlloc");
  return NULL;
}

static void start_together(void) {
  enum { COUNT = 8 };
  pthread_t t[COUNT];
  pthread_barrier_t together;
  void *shared[2] = {NULL, &together};
  check(cuInit(0), "cuInit");
  check(cuCtxCreate_v2(&shared[0], 0, 0), "cuCtxCreate");
  pthread_barrier_init(&together, NULL, COUNT);
  for (int i = 0; i < COUNT; i++) check(pthread_create(&t[i], NULL, first_call, shared), "pthread_create");
  for (int i = 0; i < COUNT; i++) pthread_join(t[i], NULL);
}

/* Children whose first calls come from several threads at once: a lazy start may happen twice. */
static void race_to_start(void) {
  for (int round = 0; round < 30; round++) {
    pid_t child = fork();
    if (!child) {
      start_together();
      exit(0);
    }
    wait_for(child);
  }
}

/* A hundred processes at once: each has a trace of its own, also under one name. */
static void hundred(void) {
  enum { COUNT = 100 };
  pid_t children[COUNT];
  int wrong = 0;
  for (int i = 0; i < COUNT; i++) {
    children[i] = fork();
    if (!children[i]) {
      start_cuda();
      allocate(2000, 10);
      exit(0);
    }
  }
  for (int i = 0; i < COUNT; i++) {
    int status;
    wrong += waitpid(children[i], &status, 0) != children[i] || status;
  }
  printf("%d of %d ended wrongly\n", wrong, COUNT);
}

/* The successor has the same pid and start time: the first program's trace must not seem to go on, nor be taken over.
 */
static void exec_self(void) {
  begin();
  let_settle();
  fflush(stdout);
  execl("/proc/self/exe", "manners", "plain", (char *)NULL);
  printf("exec: %s\n", strerror(errno));
}

/* While the successor sleeps, somebody looks. */
static void exec_sleep(void) {
  begin();
  let_settle();
  printf("replaced\n");
  execl("/bin/sleep", "sleep", "1000", (char *)NULL);
}

const struct mode forks[] = {
    {"fork-before", fork_before},
    {"fork-after", fork_after},
    {"fork-calls", fork_calls},
    {"fork-busy", fork_busy},
    {"vfork", vfork_exec},
    {"vfork-leave", vfork_leave},
    {"spawn", spawn},
    {"clone", raw_clone},
    {"race", race_to_start},
    {"hundred", hundred},
    {"exec", exec_self},
    {"exec-sleep", exec_sleep},
    {NULL, NULL},
};
