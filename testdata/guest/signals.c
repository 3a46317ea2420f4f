/* Signals, handlers and what must stay as it was about them. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "manners.h"

static void nothing(int number) { (void)number; }

/* A Go runtime takes five dispositions and adds SA_ONSTACK to every handler that it finds: golang/go 26184 and
 * runtime/signal_unix.go. */
static void dispositions(void) {
  struct sigaction own = {.sa_handler = nothing, .sa_flags = SA_RESTART}, action;
  sigaction(SIGUSR1, &own, NULL);
  sigaction(SIGCHLD, &own, NULL);
  sigaction(SIGRTMIN, &own, NULL);
  begin();
  sigaction(SIGSEGV, &own, NULL); /* while the runtime comes up */
  usleep(200000);
  for (int number = 1; number < 65; number++) {
    if (number == SIGKILL || number == SIGSTOP || sigaction(number, NULL, &action)) continue;
    bool mine = number == SIGUSR1 || number == SIGCHLD || number == SIGRTMIN || number == SIGSEGV;
    if (action.sa_handler != (mine ? nothing : SIG_DFL) || action.sa_flags & SA_ONSTACK)
      printf("signal %d was changed\n", number);
  }
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, NULL, &blocked);
  for (int number = 1; number < 65; number++)
    if (sigismember(&blocked, number) == 1) printf("signal %d is blocked\n", number);
}

static volatile sig_atomic_t ticks;
static void on_tick(int number) {
  (void)number;
  uint64_t p;
  int error = errno;
  ticks++;
  if (!cuMemAlloc_v2(&p, 0)) ticks += 1000000; /* a call in a handler, that fails at once */
  errno = error;
}

/* A hook that takes a lock deadlocks when a handler interrupts it and calls it again. */
static void calls_in_handler(void) {
  struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  start_cuda(); /* the null driver locks, so it must not be interrupted by itself: block around its calls, not around
                   ours */
  struct itimerval every = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &every, NULL);
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  for (int i = 0; i < 20000 || ticks < 200; i++) {
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    allocate(1000, 1);
    sigprocmask(SIG_UNBLOCK, &alarm, NULL);
  }
  setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
  printf("%s\n", ticks >= 1000000 ? "an empty allocation succeeded" : "ticked");
}

static pthread_t workers[2];
static uint32_t elsewhere, profiled;
static __thread bool is_own;

static void on_profile(int number) {
  (void)number;
  char room[16384]; /* more than a goroutine's stack has */
  memset(room, 1, sizeof room);
  __asm__ volatile("" ::"r"(room) : "memory");
  __atomic_add_fetch(is_own ? &profiled : &elsewhere, 1, __ATOMIC_RELAXED);
}

static void mask_profile(int how) {
  sigset_t profile;
  sigemptyset(&profile);
  sigaddset(&profile, SIGPROF);
  pthread_sigmask(how, &profile, NULL);
}

static void *work(void *context) {
  is_own = true;
  mask_profile(SIG_UNBLOCK);
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  for (int i = 0; __atomic_load_n(&profiled, __ATOMIC_RELAXED) < 100 || i < 20000; i++) allocate(1000, 1);
  return NULL;
}

/* A profiler's SIGPROF goes to the thread that burns the time, so also to the recorder's: its handler ran on a
 * goroutine's stack. */
static void profiler(void) {
  struct sigaction action = {.sa_handler = on_profile, .sa_flags = SA_RESTART};
  void *context;
  is_own = true;
  sigaction(SIGPROF, &action, NULL);
  check(cuInit(0), "cuInit");
  check(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
  setitimer(ITIMER_PROF, &(struct itimerval){{0, 1000}, {0, 1000}}, NULL);
  mask_profile(SIG_BLOCK); /* until a new thread has said that it is ours */
  for (int i = 0; i < 2; i++) check(pthread_create(&workers[i], NULL, work, context), "pthread_create");
  mask_profile(SIG_UNBLOCK);
  for (int i = 0; i < 2; i++) pthread_join(workers[i], NULL);
  setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL);
  printf("%u signals on foreign threads\n", elsewhere);
}

static pthread_t main_thread;
static uint32_t misled;
static void on_child(int number) {
  (void)number;
  if (!pthread_equal(pthread_self(), main_thread)) __atomic_add_fetch(&misled, 1, __ATOMIC_RELAXED);
}

/* The thread that waits for a signal with sigwait blocks it in all threads that it knows; another thread that does not
 * block it takes the signal away. */
static void waits_for_children(void) {
  struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_RESTART};
  sigset_t child_ended;
  main_thread = pthread_self();
  sigaction(SIGCHLD, &action, NULL);
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child_ended, NULL);
  begin();
  let_settle();
  for (int i = 0; i < 10; i++) {
    int number;
    if (!fork()) _exit(0);
    if (sigwait(&child_ended, &number) || number != SIGCHLD) printf("sigwait\n");
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
  }
  printf("%u handlers ran elsewhere\n", misled);
}

/* Stopped and continued in the middle of records, starts and flushes: nothing may depend on how long they take. */
static void stopped_often(void) {
  pid_t parent = getpid(), child = fork();
  if (!child) {
    for (int i = 0; i < 20 && getppid() == parent; i++) {
      usleep(10000);
      kill(parent, SIGSTOP);
      usleep(15000);
      kill(parent, SIGCONT);
    }
    _exit(0);
  }
  start_cuda();
  int status;
  for (int i = 0; i < 20000 || !waitpid(child, &status, WNOHANG); i++) allocate(1000, 1);
  printf("went on\n");
}

/* setuid() in a program with threads signals every one of them and waits for all: a thread that blocks that signal
 * hangs the program. */
static void gives_up_root(void) {
  begin();
  let_settle();
  check(setgid(65534) || setuid(65534), "setuid");
  allocate(1000, 20000);
  printf("%d %d\n", getuid() == 65534, geteuid() == 65534);
}

const struct mode signals[] = {
    {"dispositions", dispositions},
    {"signals", calls_in_handler},
    {"sigprof", profiler},
    {"sigchld", waits_for_children},
    {"stop", stopped_often},
    {"setuid", gives_up_root},
    {NULL, NULL},
};
