/* What the library knows that it does not see, for the trace to say so. */
#pragma once

#include <stdint.h>

/* Remembers that a function was handed out unhooked, because it was asked for in a version newer than those that
 * hooks.def describes. */
void mt_unhooked_add(const char *base, int version);

/* Writes what is remembered into the trace's information, as "unhooked.NAME" = version. For the start of recording and
 * its end. */
void mt_unhooked_report(void);

/* Set once anybody reached CUDA by a way that leads through the hooks. */
extern uint32_t mt_unhooked_reached;
static inline void mt_unhooked_set_reached(void) { __atomic_store_n(&mt_unhooked_reached, 1, __ATOMIC_RELAXED); }

/* At the end of a process that recorded nothing: where it used a GPU all the same, how it came past the hooks; else
 * NULL. */
const char *mt_unhooked_check(void);
