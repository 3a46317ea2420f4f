/* Keeps fork() out of the moments in which a thread of ours is inside the loader, the driver, the management library or
 * the interpreter: the child would find their locks taken by a thread that it does not have. */
#pragma once

#include <stdbool.h>

/* Before the first enter. False if the system takes no fork handlers, or another thread is at it just now. */
bool mt_gate_open(void);

/* Around every such call. enter waits while a fork is under way, and is for threads of ours only; try does not wait. */
void mt_gate_enter(void);
bool mt_gate_try(void);
void mt_gate_leave(void);
