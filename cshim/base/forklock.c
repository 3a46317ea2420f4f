#define _GNU_SOURCE
#include "base/forklock.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/sys.h"

/* The forking thread may itself hold a lock that the holder waits for (the loader's, in a constructor), so its wait is
 * bounded. */
#define MT_FORK_WAIT_MS 50u

static uint32_t holders;  /* threads that hold the lock; futex */
static uint32_t forking; /* threads that are in fork() */

static void before_fork(void) {
  __atomic_add_fetch(&forking, 1, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&holders, __ATOMIC_SEQ_CST)) return;
  int error = errno;
  uint64_t give_up = mt_clock_monotonic() + MT_FORK_WAIT_MS * 1000000ull;
  for (uint32_t now; (now = __atomic_load_n(&holders, __ATOMIC_SEQ_CST)) && mt_clock_monotonic() < give_up;)
    mt_sys_futex_wait(&holders, now, 10000000);
  errno = error;
}

static void after_in_parent(void) { __atomic_sub_fetch(&forking, 1, __ATOMIC_SEQ_CST); }

static void after_in_child(void) {
  __atomic_store_n(&forking, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&holders, 0, __ATOMIC_RELAXED);
}

/* pthread_atfork calls this (glibc, nptl/pthread_atfork.c). Weak: see foreign.h. */
extern int __register_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void), void *owner)
    __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

bool mt_forklock_init(void) {
  static uint32_t opened; /* 1: it is being opened, or could not be; 2: open */
  uint32_t closed = 0;
  if (__register_atfork &&
      __atomic_compare_exchange_n(&opened, &closed, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
      !__register_atfork(before_fork, after_in_parent, after_in_child, &__dso_handle))
    __atomic_store_n(&opened, 2, __ATOMIC_RELEASE);
  return __atomic_load_n(&opened, __ATOMIC_ACQUIRE) == 2;
}

bool mt_forklock_try(void) {
  __atomic_add_fetch(&holders, 1, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&forking, __ATOMIC_SEQ_CST)) return true;
  mt_forklock_release();
  return false;
}

void mt_forklock_acquire(void) {
  while (!mt_forklock_try()) mt_sys_sleep(1000000);
}

void mt_forklock_release(void) {
  __atomic_sub_fetch(&holders, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&forking, __ATOMIC_SEQ_CST)) mt_sys_futex_wake(&holders, INT32_MAX);
}
