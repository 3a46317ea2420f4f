/* Ends by the program's own will. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "endings.h"

static int plain(void) {
  start_cuda();
  allocate(1000);
  return ok();
}

static int without_cuda(void) {
  printf("none\n");
  return 4;
}

static void *leave(void *unused) {
  (void)unused;
  allocate(3);
  printf("bye\n");
  exit(5);
}

static int leave_from_thread(void) {
  start_cuda();
  allocate_beside(8);
  on_thread(leave);
  return 0;
}

/* No destructor runs: Python's os._exit, every multiprocessing worker. */
static int leave_at_once(void) {
  begin();
  _exit(42);
}

static int leave_at_once_c99(void) {
  begin();
  _Exit(43);
}

static void leave_late(void) {
  allocate(10);
  _exit(7);
}

/* A last flush that never ends, since other threads go on. */
static int leave_in_exit_handler(void) {
  start_cuda();
  allocate_beside(8);
  atexit(leave_late);
  return 0;
}

static pthread_barrier_t together;

static void *leave_too(void *unused) {
  (void)unused;
  pthread_barrier_wait(&together);
  _exit(46);
}

/* The second thread's _exit ends the process in the middle of the first one's flush. */
static int leave_twice(void) {
  pthread_t thread;
  begin();
  pthread_barrier_init(&together, NULL, 4);
  for (int i = 0; i < 3; i++) pthread_create(&thread, NULL, leave_too, NULL);
  return leave_too(NULL) == NULL;
}

static uint64_t *count; /* a page of the file "count", which outlives any end of the process */

static void leave_from_handler(int number) {
  (void)number;
  if (*count > 5000) _exit(47);
}

/* _exit is legal in a signal handler, in the middle of anything: also of a record, and of the allocator's lock. */
static int leave_in_handler(void) {
  int fd = open("count", O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096)) return 1;
  count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  start_cuda();
  sigaction(SIGALRM, &(struct sigaction){.sa_handler = leave_from_handler, .sa_flags = SA_RESTART}, NULL);
  setitimer(ITIMER_REAL, &(struct itimerval){{0, 3000}, {0, 3000}}, NULL);
  for (;;) {
    uint64_t block;
    cuMemAlloc_v2(&block, OWN_SIZE);
    ++*count;
    cuMemFree_v2(block);
  }
}

/* SIGTERM while the last flush runs: a helper thread that takes it ends the process with another status. */
static int terminate_at_exit(void) {
  sigset_t term;
  int ends[2];
  char c;
  start_cuda();
  take(OWN_SIZE, 30000);
  await_recorder();
  if (pipe(ends)) return 1;
  pid_t parent = getpid();
  if (!fork()) {
    close(ends[1]);
    if (read(ends[0], &c, 1) != 1) _exit(1);
    while (getppid() == parent && !kill(parent, SIGTERM)) usleep(100);
    _exit(0);
  }
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_BLOCK, &term, NULL);
  take(OWN_SIZE, 30000);
  return write(ends[1], "x", 1) != 1;
}

static void take_late(void) { take(OWN_SIZE, 5); }

/* quick_exit runs handlers of its own kind only. */
static int leave_quickly(void) {
  start_cuda();
  allocate_beside(4);
  at_quick_exit(take_late);
  quick_exit(6);
}

/* Frees in exit handlers are missing from traces that end with the first of them. */
static int take_at_exit(void) {
  atexit(take_late);
  begin();
  atexit(take_late);
  return 0;
}

static void say_goodbye(void) { printf("goodbye\n"); }

static void *outlive(void *unused) {
  (void)unused;
  await_state(getpid(), 'Z');
  atexit(say_goodbye);
  allocate(100);
  printf("last\n");
  return NULL;
}

/* The process ends with its last thread, and runs its handlers then: a helper thread would keep it for ever. */
static int last_thread(void) {
  pthread_t thread;
  start_cuda();
  pthread_create(&thread, NULL, outlive, NULL);
  pthread_exit(NULL);
}

static void *begin_and_outlive(void *unused) {
  start_cuda();
  pthread_barrier_wait(&together);
  return outlive(unused);
}

/* The first thread has nothing to do with CUDA. */
static int last_thread_alone(void) {
  pthread_t thread;
  pthread_barrier_init(&together, NULL, 2);
  pthread_create(&thread, NULL, begin_and_outlive, NULL);
  pthread_barrier_wait(&together);
  pthread_exit(NULL);
}

static int main_thread_only(void) {
  begin();
  pthread_exit((void *)5);
}

/* Behind the C library's back: the first thread alone, and the others are none of the program's. */
static int exit_call(void) {
  begin();
  syscall(SYS_exit, 5);
  return 0;
}

static int exit_group_call(void) {
  begin();
  syscall(SYS_exit_group, 6);
  return 0;
}

const struct mode leavings[] = {
    {"plain", plain},
    {"none", without_cuda},
    {"exit-thread", leave_from_thread},
    {"_exit", leave_at_once},
    {"_Exit", leave_at_once_c99},
    {"_exit-atexit", leave_in_exit_handler},
    {"_exit-twice", leave_twice},
    {"_exit-in-handler", leave_in_handler},
    {"term-at-exit", terminate_at_exit},
    {"quick", leave_quickly},
    {"atexit", take_at_exit},
    {"pthread-exit", last_thread},
    {"pthread-exit-idle", last_thread_alone},
    {"pthread-exit-alone", main_thread_only},
    {"exit-call", exit_call},
    {"exit-group-call", exit_group_call},
    {NULL, NULL},
};
