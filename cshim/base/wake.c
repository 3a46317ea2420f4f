#include "base/wake.h"

#include <errno.h>

#include "base/sys.h"

uint32_t mt_sampler_wanted, mt_sampler_sleeping, mt_poll_count;

void mt_wake_sampler(enum mt_occasion occasion) {
  __atomic_or_fetch(&mt_sampler_wanted, 1u << occasion, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&mt_sampler_sleeping, __ATOMIC_SEQ_CST)) return;
  int error = errno;
  mt_sys_futex_wake(&mt_sampler_wanted, INT32_MAX);
  errno = error;
}

void mt_wake_poll(void) {
  int error = errno;
  __atomic_add_fetch(&mt_poll_count, 1, __ATOMIC_RELEASE);
  mt_sys_futex_wake(&mt_poll_count, 1);
  errno = error;
}
