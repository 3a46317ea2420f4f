/* Code of ours inside the program's interpreter, out of its sight: no tracer or profiler of the program's is told of
 * it, and no exception of ours gets out. What the program's own signal handlers raise meanwhile does get out, as from
 * any of its lines. All with the interpreter's lock. Internal to the adapters. */
#pragma once

#include <stdbool.h>

bool mt_pyquiet_find(void);

/* What a pending call may find in its thread. */
struct mt_quiet {
  void *thread;
  void *type, *value, *trace;
};

/* Around code of ours that runs between two instructions: an exception in hand is put aside, and what is left of one of
 * ours is thrown away. enter is false, and there is nothing to leave, inside of a sub-interpreter. */
bool mt_pyquiet_enter(struct mt_quiet *quiet);
void mt_pyquiet_leave(struct mt_quiet *quiet);

/* Calls a function of ours as the program would, new reference or NULL with an exception that is the program's.
 * *failed: there was one of ours, which is gone now. */
void *mt_pyquiet_call(void *function, void *arguments, void *keywords, bool *failed);

/* Whether an exception came from the program's signal handlers, which run in whatever code the main thread runs, or is
 * the interpreter's own for Ctrl-C. Leaves none. */
bool mt_pyquiet_is_signal(void *exception);
