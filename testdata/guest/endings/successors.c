/* Programs that another one takes the place of. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "endings.h"

static int run_other(void) {
  start_cuda();
  allocate_beside(8);
  execl("/bin/echo", "echo", "hello", (char *)NULL);
  return 1;
}

/* The successor has the same pid and start time: the first program's trace must not seem to go on, nor be taken over.
 */
static int run_itself(void) {
  start_cuda();
  allocate_beside(4);
  execl("/proc/self/exe", "endings", "plain", (char *)NULL);
  return 1;
}

static int run_none(void) {
  begin();
  for (int i = 0; i < 100; i++) execl("/nonexistent", "x", (char *)NULL);
  printf("%d\n", errno);
  allocate(10);
  return 0;
}

static int run_without_environment(void) {
  char *const arguments[] = {(char *)"endings", (char *)"none", NULL}, *const empty[] = {NULL};
  begin();
  execve("/bin/true", arguments, empty);
  return 1;
}

/* Replaced by one that waits for its input to end: while it does, somebody looks. */
static int run_waiting(void) {
  begin();
  await_recorder();
  printf("replaced\n");
  execl("/bin/cat", "cat", (char *)NULL);
  return 1;
}

const struct mode successors[] = {{"exec", run_other},
                                  {"exec-self", run_itself},
                                  {"exec-fails", run_none},
                                  {"exec-bare", run_without_environment},
                                  {"exec-waits", run_waiting},
                                  {NULL, NULL}};
