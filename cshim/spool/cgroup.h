/* How much memory the process may still allocate within its control groups (cgroups(7)): for a spool on tmpfs. */
#pragma once

#include <stdint.h>

/* Bytes, UINT64_MAX without a limit. */
uint64_t mt_cgroup_memory_available(void);

/* The same for groups as /proc/PID/cgroup lists them, with the cgroup file system mounted at root. */
uint64_t mt_cgroup_memory_available_in(const char *groups, const char *root);
