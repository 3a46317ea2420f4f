/* Programs that are interrupted all the time, on all the stacks that there are. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "endings.h"

static volatile long ticks;

static void tick(int unused) {
  (void)unused;
  int error = errno;
  char room[512];
  memset(room, 1, sizeof room);
  __asm__ volatile("" ::"r"(room) : "memory");
  ticks++;
  errno = error;
}

static void interrupt(int number, int timer, int microseconds, int flags) {
  sigaction(number, &(struct sigaction){.sa_handler = tick, .sa_flags = flags}, NULL);
  setitimer((unsigned)timer, &(struct itimerval){{0, microseconds}, {0, microseconds}}, NULL);
}

static void say_ticked(void) { printf("%s\n", ticks > 3 ? "ticked" : "did not tick"); }

static uint32_t elsewhere, own;
static __thread bool is_own;

static void on_profile(int number) {
  (void)number;
  char room[16384]; /* more than a goroutine's stack has */
  memset(room, 1, sizeof room);
  __asm__ volatile("" ::"r"(room) : "memory");
  __atomic_add_fetch(is_own ? &own : &elsewhere, 1, __ATOMIC_RELAXED);
}

static void mask_profile(int how) {
  sigset_t profile;
  sigemptyset(&profile);
  sigaddset(&profile, SIGPROF);
  pthread_sigmask(how, &profile, NULL);
}

static void *work(void *unused) {
  (void)unused;
  is_own = true;
  mask_profile(SIG_UNBLOCK);
  for (;;) allocate(1000);
  return NULL;
}

/* A profiler's SIGPROF goes to the thread that burns the time, so also to the recorder's: its handler ran on a
 * goroutine's stack. */
static int profiled(void) {
  pthread_t thread;
  is_own = true;
  sigaction(SIGPROF, &(struct sigaction){.sa_handler = on_profile, .sa_flags = SA_RESTART}, NULL);
  start_cuda();
  setitimer(ITIMER_PROF, &(struct itimerval){{0, 1000}, {0, 1000}}, NULL);
  mask_profile(SIG_BLOCK); /* until a new thread has said that it is ours */
  for (int i = 0; i < 2; i++) pthread_create(&thread, NULL, work, NULL);
  mask_profile(SIG_UNBLOCK);
  while (__atomic_load_n(&own, __ATOMIC_RELAXED) < 100) allocate(1000);
  printf("%u signals on foreign threads\n", elsewhere);
  _exit(0);
}

static int alarmed(void) {
  interrupt(SIGALRM, ITIMER_REAL, 500, 0);
  start_cuda();
  for (int i = 0; i < 200 || ticks <= 3; i++) allocate(1000);
  say_ticked();
  return 0;
}

static int alarmed_on_small_stack(void) {
  static char stack[4096];
  sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
  interrupt(SIGALRM, ITIMER_REAL, 700, SA_ONSTACK);
  start_cuda();
  for (int i = 0; i < 100 || ticks <= 3; i++) allocate(1000);
  return ok();
}

static int handled;
static void allocate_one(int unused) {
  (void)unused;
  take(OWN_SIZE, 1);
  __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

static pthread_t first;
static void *disturb(void *unused) {
  for (int i = 0; i < 1000; i++) {
    pthread_kill(first, SIGUSR1);
    while (__atomic_load_n(&handled, __ATOMIC_RELAXED) <= i) sched_yield();
  }
  return unused;
}

static int allocate_in_handler(void) {
  pthread_t thread;
  first = pthread_self();
  sigaction(SIGUSR1, &(struct sigaction){.sa_handler = allocate_one}, NULL);
  start_cuda();
  pthread_create(&thread, NULL, disturb, NULL);
  while (__atomic_load_n(&handled, __ATOMIC_RELAXED) < 1000) continue;
  pthread_join(thread, NULL);
  return ok();
}

static sigjmp_buf back;
static void jump(int unused) {
  (void)unused;
  siglongjmp(back, 1);
}

static int jump_out(void) {
  static volatile int jumps;
  sigaction(SIGALRM, &(struct sigaction){.sa_handler = jump, .sa_flags = SA_NODEFER}, NULL);
  start_cuda();
  if (sigsetjmp(back, 1)) jumps++;
  while (jumps < 50) {
    ualarm(500, 0);
    for (;;) continue;
  }
  ualarm(0, 0);
  allocate(1000);
  printf("%d\n", jumps);
  return 0;
}

static ucontext_t here, there;
static void run_there(void) {
  for (;;) {
    allocate(2);
    swapcontext(&there, &here);
  }
}

static int other_stacks(void) {
  start_cuda();
  getcontext(&there);
  there.uc_stack.ss_sp = malloc(65536);
  there.uc_stack.ss_size = 65536;
  there.uc_link = &here;
  makecontext(&there, run_there, 0);
  for (int i = 0; i < 999; i++) swapcontext(&here, &there);
  return ok();
}

/* The thread that waits for a signal blocks it in all threads that it knows; another one that does not block it takes
 * the signal away. */
static int wait_for_signals(void) {
  const struct sigaction of_ends = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP};
  sigset_t all;
  int got;
  sigfillset(&all);
  sigdelset(&all, SIGCONT); /* somebody else may stop and continue this process, and its children */
  sigprocmask(SIG_BLOCK, &all, NULL);
  sigaction(SIGCHLD, &of_ends, NULL);
  begin();
  await_recorder();
  for (int i = 0; i < 10; i++) {
    if (i % 2) kill(getpid(), SIGUSR2);
    else if (!fork()) _exit(0);
    sigwait(&all, &got);
    printf("%d\n", got);
  }
  return 0;
}

static void nothing(int number) { (void)number; }

/* A Go runtime takes five dispositions and adds SA_ONSTACK to every handler that it finds: golang/go 26184 and
 * runtime/signal_unix.go. */
static int dispositions(void) {
  const struct sigaction mine = {.sa_handler = nothing, .sa_flags = SA_RESTART};
  const int handled_here[] = {SIGUSR1, SIGCHLD, SIGRTMIN, SIGSEGV};
  struct sigaction action;
  sigset_t blocked, want;
  sigemptyset(&want);
  for (int i = 0; i < 4; i++) {
    if (handled_here[i] == SIGSEGV) begin(); /* that one while the runtime comes up */
    sigaction(handled_here[i], &mine, NULL);
    sigaddset(&want, handled_here[i]);
  }
  await_recorder();
  pthread_sigmask(SIG_SETMASK, NULL, &blocked);
  for (int number = 1; number < 65; number++) {
    if (sigismember(&blocked, number) == 1) printf("signal %d is blocked\n", number);
    if (sigaction(number, NULL, &action)) continue;
    if (action.sa_handler != (sigismember(&want, number) == 1 ? nothing : SIG_DFL) || action.sa_flags & SA_ONSTACK)
      printf("signal %d was changed\n", number);
  }
  return ok();
}

/* Stopped and continued in the middle of records, starts and flushes: nothing may depend on how long they take. */
static int stopped_often(void) {
  pid_t parent = getpid(), child = fork();
  if (!child) {
    for (int i = 0; i < 20 && getppid() == parent; i++) {
      kill(parent, SIGSTOP);
      await_state(parent, 'T');
      usleep(10000); /* a while without it, and one with it, of any length */
      kill(parent, SIGCONT);
      usleep(10000);
    }
    _exit(0);
  }
  start_cuda();
  int status;
  for (int i = 0; i < 20000 || !waitpid(child, &status, WNOHANG); i++) take(OWN_SIZE, 1);
  return ok();
}

const struct mode timers[] = {
    {"sigprof", profiled},
    {"sigalrm", alarmed},
    {"small-altstack", alarmed_on_small_stack},
    {"handler-allocates", allocate_in_handler},
    {"siglongjmp", jump_out},
    {"ucontext", other_stacks},
    {"sigwait", wait_for_signals},
    {"dispositions", dispositions},
    {"stop", stopped_often},
    {NULL, NULL},
};
