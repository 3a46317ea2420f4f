/* Makes fork() wait while one of the library's threads is inside the loader, the driver, NVML or the interpreter: the
 * child would inherit their locks, held by a thread that it does not have. */
#pragma once

#include <stdbool.h>

/* Registers the fork handlers; before the first acquire. False if that failed, or another thread is doing it now. */
bool mt_forklock_init(void);

/* Around every such call; shared. acquire waits while a fork is under way, and is for the library's threads only. */
void mt_forklock_acquire(void);
bool mt_forklock_try(void);
void mt_forklock_release(void);
