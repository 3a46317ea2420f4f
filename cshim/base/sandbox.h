/* Whether system calls of this process are filtered (seccomp(2)), and who installed the filter. */
#pragma once

#include <stdbool.h>

enum mt_sandbox {
  MT_SANDBOX_NONE,
  MT_SANDBOX_CONTAINER, /* in force when the program and this library were loaded: refuses what is exotic */
  MT_SANDBOX_SERVICE,   /* the same without a container, of a service manager: kills by default, over whole kinds of
                           calls that the program does without (systemd's SystemCallFilter=~@resources and its like) */
  MT_SANDBOX_OWN, /* the program's own, or one of which that cannot be ruled out: may end the process over any call that
                     the program does not make itself */
};

/* Reads Seccomp and Seccomp_filters of /proc/PID/status (proc_pid_status(5)); may be called from any thread. A filter's
 * program cannot be read, so the answer depends on who installed it, and where. */
enum mt_sandbox mt_sandbox_kind(void);

/* Whether a filter that may kill over a system call is in force. */
static inline bool mt_sandbox_may_kill(void) { return mt_sandbox_kind() >= MT_SANDBOX_SERVICE; }
