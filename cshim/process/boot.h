/* The Go half's start: its runtime sleeps in the loaded library until the first event wants a drainer. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A Go runtime takes generously, and cannot go on without what it wants: address space, writable memory. */
#define MT_GO_ADDRESS_SPACE (4ull << 30)
#define MT_GO_DATA (1ull << 30)

/* At load. A first thread that makes no CUDA call leaves without a word: here it is learned where to look for it. */
void mt_boot_prepare(void);

/* Starts the helper thread of this process. Recording does not depend on it: without a drainer the spool keeps everything up to its cap. */
void mt_boot_start(void);

/* Waits until the runtime is up, or will not be, but at most so long. */
void mt_boot_wait(unsigned limit_ms);

/* The Go runtime found that it cannot go on (goend.h): nobody drains any more, and the caller's thread does what must be done all the same. May not return. */
void mt_boot_go_ended(void);

/* A thread of the program ends that recorded something. Once the first one has left, the process ends with the last. */
void mt_boot_thread_ends(int32_t tid);
