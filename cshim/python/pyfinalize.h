/* Finalization of the interpreter (Py_FinalizeEx): microseconds after Py_IsFinalizing() becomes true it frees the
 * memory of its daemon threads' frames. So the walker registers with atexit, which runs before, and stops walking on
 * all threads but the main one from then on. Internal to the Python walker. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"

extern uint32_t mt_pyfinalize_pid; /* the process whose interpreter is being finalized; 0: none is */

/* Whether the interpreter of this process is being finalized, and not by the calling thread. */
bool mt_pyfinalize_stops_thread(void);

/* Whether the calling thread must not read its frames any more. The answer holds while the thread is marked as
 * capturing, which it must be before the call. */
static inline bool mt_pyfinalize_forbids_walk(void) {
  return MT_UNLIKELY(__atomic_load_n(&mt_pyfinalize_pid, __ATOMIC_RELAXED)) && mt_pyfinalize_stops_thread();
}

/* Finds the functions that mt_pyfinalize_register calls. From one of the library's threads, once. The barrier, which
 * takes milliseconds, makes finalization a little faster. */
void mt_pyfinalize_prepare(void);
bool mt_pyfinalize_prepared(void);
void mt_pyfinalize_prepare_barrier(void);

/* Registers with atexit, if the program has imported it. True if it is registered; if not, a later call may succeed. On
 * the main thread, with the interpreter's lock and no exception set; may leave one. */
bool mt_pyfinalize_register(void);

/* Whether at least Py_AtExit is registered, as it is after mt_pyfinalize_register. With the interpreter's lock. */
bool mt_pyfinalize_registered(void);

/* Whether an interpreter was finalized since the last call: the next one must be tested again. */
bool mt_pyfinalize_ended(void);

/* An interpreter passed its test. If it is not the one that was finalized, the stacks of all its threads are read
 * again. */
void mt_pyfinalize_test_passed(void);

/* Listeners: before finalization (on the main thread, with the lock and no exception set), and after everything was
 * freed. Registered once, at load. */
void mt_pyfinalize_on_end(void (*ending)(void), void (*ended)(void));
