/* Calls that the library knows to have missed, for the trace. */
#pragma once

#include <stdint.h>

/* Notes a function that was handed out unhooked, because a version newer than those of hooks.def was requested. */
void mt_unhooked_add(const char *base, int version);

/* Writes what is remembered into the trace's information, as "unhooked.NAME" = version. For the start of recording and
 * its end. */
void mt_unhooked_report(void);

/* Set once CUDA was reached through the hooks. */
extern uint32_t mt_unhooked_reached;
static inline void mt_unhooked_set_reached(void) { __atomic_store_n(&mt_unhooked_reached, 1, __ATOMIC_RELAXED); }

/* At the end of a process that recorded nothing: if it used a GPU all the same, how it bypassed the hooks; else NULL.
 */
const char *mt_unhooked_check(void);
