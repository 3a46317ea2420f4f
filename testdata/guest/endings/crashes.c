/* Ends that nobody asked for. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "endings.h"

static int segfault(void) {
  static volatile uintptr_t nowhere = 8;
  start_cuda();
  allocate_beside(8);
  *(volatile int *)nowhere = 1;
  return 0;
}

static int abort_busy(void) {
  start_cuda();
  allocate_beside(8);
  abort();
}

static int stack_overflow(void) {
  start_cuda();
  allocate(100);
  return overflow_stack();
}

static void *overflow_on(void *unused) {
  (void)unused;
  allocate(10);
  overflow_stack();
  return NULL;
}

static int stack_overflow_on_thread(void) {
  start_cuda();
  allocate_beside(4);
  on_thread(overflow_on);
  return 0;
}

static void recover(int number, siginfo_t *info, void *unused) {
  (void)unused;
  allocate(1);
  const char *said = number == SIGSEGV && info->si_addr ? "handled\n" : "not ours\n";
  if (write(1, said, strlen(said)) > 0) _exit(9);
}

/* The handler runs on a small stack of its own and allocates there. A runtime that takes SIGSEGV for its own checks
 * swallows it. */
static int overflow_handled(void) {
  static char stack[32768];
  sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
  sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = recover, .sa_flags = SA_ONSTACK | SA_SIGINFO}, NULL);
  start_cuda();
  allocate(100);
  return overflow_stack();
}

static int terminated(void) {
  start_cuda();
  allocate_beside(2);
  kill(getpid(), SIGTERM);
  for (;;) pause();
  return 0;
}

/* A runtime that takes SIGPIPE lets `yes | head` print an error in place of ending. */
static int broken_pipe(void) {
  int ends[2];
  begin();
  if (pipe(ends)) return 1;
  close(ends[0]);
  if (write(ends[1], "x", 1) < 0) printf("still here\n");
  return 0;
}

static int out_of_cpu(void) {
  setrlimit(RLIMIT_CPU, &(struct rlimit){1, 2});
  start_cuda();
  for (;;) allocate(100);
  return 0;
}

const struct mode crashes[] = {
    {"segv", segfault},
    {"abort", abort_busy},
    {"stack-overflow", stack_overflow},
    {"stack-overflow-thread", stack_overflow_on_thread},
    {"overflow-handled", overflow_handled},
    {"term", terminated},
    {"pipe", broken_pipe},
    {"cpu", out_of_cpu},
    {NULL, NULL},
};
