/* Ends by the program's own will. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "endings.h"

static int plain(void) {
  start_cuda();
  allocate(1000);
  printf("ok\n");
  return 0;
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

static void leave_at_once(void) {
  allocate(10);
  _exit(7);
}

static int leave_in_handler(void) {
  start_cuda();
  allocate_beside(8);
  atexit(leave_at_once);
  return 0;
}

static void allocate_late(void) { allocate(2); }

static int leave_quickly(void) {
  start_cuda();
  allocate_beside(4);
  at_quick_exit(allocate_late);
  quick_exit(6);
}

static void *outlive(void *unused) {
  (void)unused;
  usleep(20000);
  allocate(100);
  printf("last\n");
  return NULL;
}

static int last_thread(void) {
  pthread_t thread;
  start_cuda();
  pthread_create(&thread, NULL, outlive, NULL);
  pthread_exit(NULL);
}

static void *begin_and_outlive(void *unused) {
  start_cuda();
  return outlive(unused);
}

/* The first thread has nothing to do with CUDA. */
static int last_thread_alone(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, begin_and_outlive, NULL);
  usleep(15000);
  pthread_exit(NULL);
}

static int joined(void) {
  pthread_t thread;
  start_cuda();
  pthread_create(&thread, NULL, outlive, NULL);
  pthread_join(thread, NULL);
  return 0;
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
    {"_exit-atexit", leave_in_handler},
    {"quick", leave_quickly},
    {"pthread-exit", last_thread},
    {"pthread-exit-idle", last_thread_alone},
    {"joined", joined},
    {"pthread-exit-alone", main_thread_only},
    {"exit-call", exit_call},
    {"exit-group-call", exit_group_call},
    {NULL, NULL},
};
