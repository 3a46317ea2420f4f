/* Runs the library's code inside the program's interpreter unnoticed: no tracer or profiler sees it, and no exception
 * of its own gets out. What the program's own signal handlers raise meanwhile does get out, as from any of its lines.
 * All with the interpreter's lock. Internal to the adapters. */
#pragma once

#include <stdbool.h>

bool mt_pyquiet_find(void);

/* What a pending call may find in its thread. */
struct mt_quiet {
  void *thread;
  void *type, *value, *trace;
};

/* Around library code that runs between two instructions: sets the current exception aside, and clears what the code
 * left. enter is false, and leave must not be called, inside of a sub-interpreter. */
bool mt_pyquiet_enter(struct mt_quiet *quiet);
void mt_pyquiet_leave(struct mt_quiet *quiet);

/* Calls a function of a script, new reference or NULL with an exception that is the program's. *failed: it raised one
 * of its own, which was cleared. */
void *mt_pyquiet_call(void *function, void *arguments, void *keywords, bool *failed);

/* Whether an exception came from the program's signal handlers, which run in whatever code the main thread runs, or is
 * the interpreter's own for Ctrl-C. Leaves none. */
bool mt_pyquiet_is_signal(void *exception);

/* Whether the program has set handlers of its own for signals. Leaves no exception. */
bool mt_pyquiet_has_handlers(void);
