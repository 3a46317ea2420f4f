/* What the Go runtime believes to be the process's start block: argv, environment and auxiliary vector in one row, each
 * ended by a null, as the kernel lays them out. */
#pragma once

/* Words of argv with its null; the environment begins behind them. */
#define MT_INITIAL_ARGV 2

extern void *mt_initial_stack[];

/* Fills it in from the settings and from the names of the spool and the trace, which must exist. */
void mt_initial_stack_build(void);
