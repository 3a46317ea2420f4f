/* How much memory the process may still take, as far as its control groups say: for a spool that lies in memory. */
#pragma once

#include <stdint.h>

/* Bytes, UINT64_MAX without a limit. */
uint64_t mt_memory_available(void);

/* The same of groups as /proc/PID/cgroup lists them, whose folders lie below root. */
uint64_t mt_memory_available_in(const char *groups, const char *root);
