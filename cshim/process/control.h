/* The socket at which the process can be asked: /tmp/memtrace-UID/PID.sock, mode 0600, for its own user and root. One packet asks, one answers:
 *
 *   status                       what it does
 *   start, MEMTRACE_NAME=VALUE   begins to record, where the library is asleep; each setting on a line of its own
 *   stop                         ends the recording: the trace is whole then. Nothing is recorded any more, and before the first event not yet
 *   mark NAME                    as memtrace_mark
 *
 * The answer's lines: state=idle|asleep|recording|ended|off, trace=PATH, start=early|late, held=BYTES of before a late start, stood_ns=NANOSECONDS that the interpreter stood
 * still for it at most, error=SENTENCE. Read by internal/control. */
#pragma once

#include <stdbool.h>

/* For a process that does not record yet: threads that wait until somebody asks. On a thread of the program's. False if they cannot be had. */
bool mt_control_open(void);

/* For one that does. On a thread of ours with descriptors of its own, which the socket is to belong to. */
void mt_control_serve(void);

/* The process ends: takes the socket's name away. Async-signal-safe. */
void mt_control_end(void);
