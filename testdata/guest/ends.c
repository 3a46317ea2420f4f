/* The ways in which programs end. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "manners.h"

/* No destructor runs: Python's os._exit, every multiprocessing worker (facts of the house: no exit hook). */
static void leave_at_once(void) {
  begin();
  _exit(42);
}

static void leave_at_once_c99(void) {
  begin();
  _Exit(43);
}

static void say_quickly(void) {
  allocate(1000, 5);
  if (write(1, "quick\n", 6) != 6) abort();
}

/* quick_exit runs handlers of its own kind only. */
static void leave_quickly(void) {
  begin();
  at_quick_exit(say_quickly);
  quick_exit(44);
}

static void *allocate_on(void *context) {
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  for (;;) allocate(500, 1);
  return NULL;
}

/* A last flush that never ends, since other threads go on. */
static void leave_busy(void) {
  void *context;
  pthread_t t;
  check(cuInit(0), "cuInit");
  check(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
  allocate(1000, 100);
  for (int i = 0; i < 4; i++) check(pthread_create(&t, NULL, allocate_on, context), "pthread_create");
  let_settle();
  _exit(45);
}

static pthread_barrier_t together;
static void *leave_too(void *unused) {
  (void)unused;
  pthread_barrier_wait(&together);
  _exit(46);
}

/* The second thread's _exit ends the process in the middle of the first one's flush. */
static void leave_twice(void) {
  pthread_t t;
  begin();
  pthread_barrier_init(&together, NULL, 4);
  for (int i = 0; i < 3; i++) check(pthread_create(&t, NULL, leave_too, NULL), "pthread_create");
  pthread_barrier_wait(&together);
  _exit(46);
}

static uint64_t *count;
static void leave_from_handler(int number) {
  (void)number;
  _exit(47);
}

/* _exit is legal in a signal handler, in the middle of anything: also of a record, and of the allocator's lock. */
static void leave_in_handler(void) {
  struct sigaction action = {.sa_handler = leave_from_handler};
  count = shared_count();
  sigaction(SIGALRM, &action, NULL);
  start_cuda();
  setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, 150000}}, NULL);
  for (;;) {
    uint64_t p;
    check(cuMemAlloc_v2(&p, 1000), "cuMemAlloc");
    ++*count;
    check(cuMemFree_v2(p), "cuMemFree");
  }
}

/* SIGTERM while the last flush runs: a helper thread that takes it ends the process with another status. */
static void terminate_at_exit(void) {
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  start_cuda();
  allocate(1000, 30000);
  let_settle();
  int ends[2];
  check(pipe(ends), "pipe");
  pid_t parent = getpid(), child = fork();
  if (!child) {
    char c;
    close(ends[1]);
    if (read(ends[0], &c, 1) != 1) _exit(1);
    while (getppid() == parent && !kill(parent, SIGTERM)) usleep(100);
    _exit(0);
  }
  sigprocmask(SIG_BLOCK, &term, NULL);
  allocate(1000, 30000);
  if (write(ends[1], "x", 1) != 1) printf("write\n");
}

static void abort_mode(void) {
  begin();
  abort();
}

static void on_segv(int number, siginfo_t *info, void *unused) {
  (void)unused;
  static const char text[] = "handler ran\n";
  if (number == SIGSEGV && info->si_addr == (void *)16 && write(1, text, sizeof text - 1) > 0) _exit(77);
  _exit(78);
}

static void crash(void) {
  static volatile uintptr_t nowhere = 16;
  *(volatile int *)nowhere = 1;
}

/* A runtime that takes SIGSEGV for its own null checks swallows the program's handler. */
static void segv_handled(void) {
  struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  begin();
  let_settle();
  crash();
}

static void segv_plain(void) {
  begin();
  let_settle();
  crash();
}

/* A runtime that takes SIGPIPE lets `yes | head` print an error instead of ending. */
static void broken_pipe(void) {
  begin();
  int ends[2];
  check(pipe(ends), "pipe");
  close(ends[0]);
  if (write(ends[1], "x", 1) < 0) printf("still here\n");
}

static void say_goodbye(void) { printf("goodbye\n"); }

static void *outlives_main(void *unused) {
  (void)unused;
  let_settle();
  atexit(say_goodbye);
  return NULL;
}

/* The process ends with its last thread, and then runs its handlers: a helper thread would keep it for ever. */
static void leave_main(void) {
  pthread_t t;
  begin();
  check(pthread_create(&t, NULL, outlives_main, NULL), "pthread_create");
  pthread_exit(NULL);
}

static void allocate_late(void) {
  allocate(1000, 5);
  printf("late\n");
}

/* Frees in exit handlers are missing from traces that end with the first of them. */
static void allocate_at_exit(void) {
  atexit(allocate_late);
  begin();
  atexit(allocate_late);
}

/* A process group that is killed at once, the recorder's helpers with it. */
static void kill_group(void) {
  pid_t child = fork();
  if (!child) {
    setpgid(0, 0);
    begin();
    for (int i = 0; i < 3; i++)
      if (!fork()) {
        uint64_t p;
        cuMemAlloc_v2(&p, 3000);
        for (;;) pause();
      }
    let_settle();
    kill(0, SIGKILL);
    pause();
  }
  wait_for(child);
}

const struct mode ends[] = {
    {"_exit", leave_at_once},     {"_Exit", leave_at_once_c99}, {"quick_exit", leave_quickly},
    {"_exit-busy", leave_busy},   {"_exit-twice", leave_twice}, {"_exit-in-handler", leave_in_handler},
    {"term", terminate_at_exit},  {"abort", abort_mode},        {"segv-handled", segv_handled},
    {"segv", segv_plain},         {"pipe", broken_pipe},        {"pthread_exit", leave_main},
    {"atexit", allocate_at_exit}, {"kill-group", kill_group},   {NULL, NULL},
};
