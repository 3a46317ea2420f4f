/* The end of the interpreter: microseconds after it says that it ends it frees what its daemon threads' frames lie in.
 * So the walker asks to be told before, by the module atexit, and keeps all threads but the main one away from then on.
 * Internal to the Python walker. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"

extern uint32_t mt_pyfinalize_pid; /* the process whose interpreter is about to end; 0: none is */

/* Whether the calling thread is one that the interpreter of this process leaves behind. */
bool mt_pyfinalize_stops_thread(void);

/* Whether the calling thread must not look at its frames any more. The answer holds while the thread is marked as
 * capturing, which it must be before it asks. */
static inline bool mt_pyfinalize_forbids_walk(void) {
  return MT_UNLIKELY(__atomic_load_n(&mt_pyfinalize_pid, __ATOMIC_RELAXED)) && mt_pyfinalize_stops_thread();
}

/* Finds what arming takes. From a thread of ours, once, before the first try to arm. The barrier, which takes
 * milliseconds, makes what happens at the end a little faster. */
void mt_pyfinalize_prepare(void);
bool mt_pyfinalize_prepared(void);
void mt_pyfinalize_prepare_barrier(void);

/* Asks the interpreter to tell, if the program has loaded what it tells by. Whether it will: if not, it may later. On
 * the main thread, with the interpreter's lock and no exception in hand; may leave one. */
bool mt_pyfinalize_register(void);

/* Whether it tells at least when nothing is left of it, as it does once it was asked. With the interpreter's lock. */
bool mt_pyfinalize_registered(void);

/* Whether an interpreter ended since this was last asked, so that the next one is to be tested anew. */
bool mt_pyfinalize_ended(void);

/* An interpreter passed its test. If it is not the one that ended, all its threads' stacks are read again. */
void mt_pyfinalize_test_passed(void);

/* What is called when the interpreter is about to end (on its main thread, with its lock and no exception in hand), and
 * when nothing is left of it. Registered once, at load. */
void mt_pyfinalize_on_end(void (*ending)(void), void (*ended)(void));
