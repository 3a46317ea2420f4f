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

/* Leaves a recording without events but with this entry, for a process that ends. Does nothing where recording began.
 */
void mt_record_exit_note(const char *key, const char *value);

/* Sleep: nothing is recorded before a request; false where a recording has begun. Wake: recording starts with the next
 * event. */
bool mt_recorder_sleep(void);
void mt_recorder_wake(void);

/* Begins a recording in a running program, where none was begun. Events bypass the recorder until prepare has rebound
 * the program's calls and record_held, on a thread that records, has recorded live memory; record_held ends that
 * (mt_bypass_end_unless_passed), or its return does. From then on other threads' events wait, perhaps with the
 * interpreter's lock, until record_held calls recorded or returns: in between it must not wait for that lock. False
 * where there is a recording, or it failed. */
bool mt_recorder_start(void (*prepare)(void), void (*record_held)(void (*recorded)(void)));

/* Why there is no recording, NULL if nothing failed. */
const char *mt_recorder_failure(void);

/* Disables recording for good with one message on stderr. The program goes on. */
void mt_fail(const char *what, int error);
