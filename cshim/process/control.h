/* The socket at which the process can be asked: PID.sock in MEMTRACE_CONTROL_DIR or else in /tmp/memtrace-UID, mode
 * 0600, for its own user and root. One packet asks, one answers:
 *
 *   status                       what it does
 *   start, MEMTRACE_NAME=VALUE   begins to record, where the library is asleep; each setting on a line of its own
 *   stop                         ends the recording: the trace is whole then. Nothing is recorded any more, and
 *                                before the first event not yet
 *   mark NAME                    as memtrace_mark
 *   referrers ROWS MILLISECONDS  what refers to PyTorch's tensors, in so many rows; the interpreter's lock is
 *                                waited for that long
 *
 * The answer's lines: state=idle|asleep|recording|ended|off, trace=PATH, start=early|late, held=BYTES of before a late
 * start, stood_ns=NANOSECONDS that the interpreter stood still for it at most, error=SENTENCE; referrers=BYTES that
 * follow in packets of at most 16 KiB, seq=ORDER NUMBER at which all of those tensors were live, 0 without a recording.
 * These are lines of fields that tabs divide: tensors, whether time ran out, rows that were left out; then for each row
 * bytes, tensors, nodes and bytes of graphs, type, shape, device, path, types on it, and addresses of the storages in
 * hexadecimal. Read by internal/control. */
#pragma once

#include <stdbool.h>

/* For a process that does not record yet: threads that wait until somebody asks. On a thread of the program's. False if
 * they cannot be had. */
bool mt_control_open(void);

/* For one that does. On a thread of ours with descriptors of its own, which the socket is to belong to. */
void mt_control_serve(void);

/* Warns where the folder that the user named can hold no socket. On a thread of the program's. */
void mt_control_check(void);

/* The process ends: takes the socket's name away. Async-signal-safe. */
void mt_control_end(void);
