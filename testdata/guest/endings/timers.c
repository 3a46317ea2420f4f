/* Programs that are interrupted all the time, on all the stacks that there are. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
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

static int profiled(void) {
  interrupt(SIGPROF, ITIMER_PROF, 1000, 0);
  start_cuda();
  allocate_beside(2);
  for (int i = 0; i < 100 || ticks <= 3; i++) allocate(1000);
  say_ticked();
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
  for (int i = 0; i < 100; i++) allocate(1000);
  printf("ok\n");
  return 0;
}

static void allocate_one(int unused) {
  (void)unused;
  allocate(1);
}

static pthread_t first;
static int over;
static void *disturb(void *unused) {
  (void)unused;
  while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
    pthread_kill(first, SIGUSR1);
    usleep(200);
  }
  return NULL;
}

static int allocate_in_handler(void) {
  pthread_t thread;
  first = pthread_self();
  sigaction(SIGUSR1, &(struct sigaction){.sa_handler = allocate_one}, NULL);
  start_cuda();
  pthread_create(&thread, NULL, disturb, NULL);
  for (volatile long i = 0; i < 20000000; i++) continue;
  __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  printf("ok\n");
  return 0;
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
  printf("ok\n");
  return 0;
}

static int wait_for_signal(void) {
  sigset_t all;
  int got;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  begin();
  kill(getpid(), SIGUSR2);
  sigwait(&all, &got);
  printf("%d\n", got);
  return 0;
}

const struct mode timers[] = {
    {"sigprof", profiled},
    {"sigalrm", alarmed},
    {"small-altstack", alarmed_on_small_stack},
    {"handler-allocates", allocate_in_handler},
    {"siglongjmp", jump_out},
    {"ucontext", other_stacks},
    {"sigwait", wait_for_signal},
    {NULL, NULL},
};
