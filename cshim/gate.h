/* Keeps fork() out of the moments in which our thread is inside the loader, the driver or the management library: the child would find their locks taken by a
 * thread that it does not have. */
#pragma once

#include <stdbool.h>

/* Before the first enter, by the thread that will. False if the system takes no fork handlers. */
bool mt_gate_open(void);

/* Around every such call, by the only thread that makes them. enter waits while a fork is under way. */
void mt_gate_enter(void);
void mt_gate_leave(void);
