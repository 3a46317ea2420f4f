#define _GNU_SOURCE
#include "base/saferead.h"

#include <errno.h>
#include <sys/uio.h>

#include "base/sandbox.h"
#include "base/sys.h"

bool mt_safe_read_possible(void) {
  uint64_t here = 1, copy = 0;
  return mt_sandbox_kind() != MT_SANDBOX_OWN && mt_safe_read(&copy, (uintptr_t)&here, sizeof here) && copy == here;
}

bool mt_safe_read(void *to, uintptr_t address, size_t size) {
  int error = errno;
  struct iovec here = {to, size}, there = {(void *)address, size};
  ssize_t n = mt_sys(SYS_process_vm_readv, mt_sys_getpid(), &here, 1, &there, 1, 0);
  errno = error;
  return n == (ssize_t)size;
}
