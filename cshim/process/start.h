/* Recording that begins later than the program: by memtrace_start, or on request. */
#pragma once

#include <stdint.h>

/* Bytes that PyTorch held when recording began, by its own account. */
uint64_t mt_start_held(void);

/* Nanoseconds that the interpreter was stopped for that account, at most. */
uint64_t mt_start_paused_ns(void);

/* "early" or "late": whether CUDA was in use then. NULL: neither, since it began with the program. */
const char *mt_start_mode(void);

/* Writes into a fresh dictionary when that was. */
void mt_start_note(void);
