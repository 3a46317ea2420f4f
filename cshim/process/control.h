/* The control socket of a process: PID.sock in MEMTRACE_CONTROL_DIR or else in /tmp/memtrace-UID, mode 0600, for its
 * own user and root. A request is one packet (SOCK_SEQPACKET), and so is its response:
 *
 *   status                       the process's state
 *   start, MEMTRACE_NAME=VALUE   begins to record, where the library is asleep; each setting on a line of its own
 *   stop                         ends the recording: the trace is whole then. Nothing is recorded any more, and
 *                                before the first event not yet
 *   mark NAME                    as memtrace_mark
 *   referrers ROWS MILLISECONDS  what refers to PyTorch's tensors, in so many rows; waits at most that long for the
 *                                interpreter's lock
 *
 * The response's lines:
 *
 *   state=WORD            idle, asleep, recording, ended or off
 *   trace=PATH
 *   start=early|late      of a recording that did not begin with the program
 *   held=BYTES            of PyTorch's blocks from before a late start
 *   stood_ns=NANOSECONDS  that the interpreter was stopped for the late start, at most
 *   error=SENTENCE
 *   referrers=BYTES       that follow in packets of at most 16 KiB
 *   seq=ORDER NUMBER      at which all of those tensors were live, 0 without a recording
 *
 * What follows are lines of fields separated by tabs: tensors, whether time ran out, rows that were left out; then for
 * each row bytes, tensors, nodes and bytes of graphs, type, shape, device, path, types on it, and addresses of the
 * storages in hexadecimal. Read by internal/control. */
#pragma once

#include <stdbool.h>

/* For a process that does not record yet: starts threads that wait for requests. On a thread of the program's. False if
 * they cannot be created. */
bool mt_control_open(void);

/* For a process that records. On a library thread with descriptors of its own, which the socket is to belong to. */
void mt_control_serve(void);

/* Warns if the folder that the user named cannot hold a socket. On a thread of the program's. */
void mt_control_check(void);

/* The process ends: removes the socket. Async-signal-safe. */
void mt_control_end(void);
