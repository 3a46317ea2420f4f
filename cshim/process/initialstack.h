/* A stand-in for the process's initial stack, for the Go runtime: argv, environment and auxiliary vector in one row,
 * each ended by a null (System V ABI, "Initial Process Stack"). */
#pragma once

/* Words of argv with its null; the environment follows. */
#define MT_INITIAL_ARGV 2

extern void *mt_initial_stack[];

/* Fills it in from the settings and from the names of the spool and the trace, which must exist. */
void mt_initial_stack_build(void);
