/* Life of the library inside the program: lazy start at the first event, forked children, and the end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/thread.h"

/* The process is about to end by itself: stops recording and lets the drainer write what is left, so that a whole trace
 * and no spool remains. Does nothing in a process that does not record, such as a forked child that made no call and a
 * vfork child. Async-signal-safe; may be called more than once and by several threads, each of which returns when the
 * trace is whole, or after seconds if it cannot be. The trace keeps the exit status, of which parents see the lower
 * eight bits, unless it is MT_STATUS_UNKNOWN. */
#define MT_STATUS_UNKNOWN (-0x7fffffff - 1)
void mt_recorder_end(int status);

/* Leaves a recording without events, for a process that ends and has nothing but this to say. Does nothing where
 * recording began. */
void mt_record_exit_note(const char *key, const char *value);

/* Nothing is recorded before somebody asks for it, or from the next event on. The first is false where a recording has
 * begun. */
bool mt_recorder_sleep(void);
void mt_recorder_wake(void);

/* Begins a recording amid the program's work, where none was begun. Events pass unrecorded until prepare has led the
 * program's calls here and look, on a thread that records, has recorded what is there; look ends that
 * (mt_bypass_end_unless_passed), or its return does. False where there is a recording, or none can be had. */
bool mt_recorder_start(void (*prepare)(void), void (*record_held)(void));

/* Why there is no recording, NULL if nothing failed. */
const char *mt_recorder_failure(void);

/* Stops recording for good and says why, once, on stderr. The program runs on. */
void mt_fail(const char *what, int error);
