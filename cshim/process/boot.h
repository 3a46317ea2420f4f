/* The Go half's start: its runtime sleeps in the loaded library until the first event wants a drainer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of our threads, by which they are told from the program's. */
#define MT_THREAD_NAME "memtrace"

/* A Go runtime takes generously, and cannot go on without what it wants: address space, writable memory. */
#define MT_GO_ADDRESS_SPACE (4ull << 30)
#define MT_GO_DATA (1ull << 30)

/* At load. A first thread that makes no CUDA call leaves without a word: here it is learned where to look for it. */
void mt_boot_prepare(void);

/* Starts the helper thread of this process. Recording does not depend on it: without a drainer the spool keeps
 * everything up to its cap. */
void mt_boot_start(void);

/* Waits until the runtime is up, or will not be, but at most so long. */
void mt_boot_wait(unsigned limit_ms);

/* The Go runtime found that it cannot go on (goend.h): nobody drains any more, and the caller's thread does what must
 * be done all the same. May not return. */
void mt_boot_go_ended(void);

/* A thread of the program ends that recorded something. Once the first one has left, the process ends with the last. */
void mt_boot_thread_ends(int32_t tid);

/* A thread of ours, detached, with the caller's mask of signals and its descriptors. */
bool mt_boot_thread(void *(*run)(void *), size_t stack);

/* Gives the calling thread a table of descriptors of its own, with nothing in it but three that lead nowhere. */
bool mt_boot_unshare_descriptors(void);

/* Whether the program's last thread is gone, and only ours are left. */
bool mt_boot_is_alone(void);

/* Ends the process then as it would have ended without us. On the program's descriptors. */
_Noreturn void mt_boot_end_alone(void);
