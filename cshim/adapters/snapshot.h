/* The blocks of PyTorch's allocator when recording begins in a running program, by torch.cuda.memory._snapshot(). */
#pragma once

#include <stdint.h>

/* Records it on the calling thread, which records already, while the events of all others pass (base/thread.h); then
 * that is over, and recorded is called before the interpreter can give its lock to a thread whose event waits. Takes
 * that lock, and waits for it. Returns how many bytes of blocks that were: 0 where there is no Python or no PyTorch
 * that works with a device, and where PyTorch has no such account; then recorded may not have been called. */
uint64_t mt_snapshot_record(void (*recorded)(void));

/* Nanoseconds for which it kept the interpreter's lock at most, in one go. */
uint64_t mt_snapshot_paused_ns(void);
