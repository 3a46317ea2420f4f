/* The Go half's start: its runtime sleeps in the loaded library until the first event wants a drainer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Name of the library's threads, which distinguishes them from the program's. */
#define MT_THREAD_NAME "memtrace"

/* Limits below which no Go runtime is started: it maps generously, and dies when a mapping fails. Address space,
 * writable memory. */
#define MT_GO_ADDRESS_SPACE (4ull << 30)
#define MT_GO_DATA (1ull << 30)

/* At load: finds the word that the kernel clears when the first thread ends (PR_GET_TID_ADDRESS): one that makes no
 * CUDA call is not seen to end. */
void mt_boot_prepare(void);

/* Starts the helper thread of this process. Recording does not depend on it: without a drainer the spool keeps
 * everything up to its cap. */
void mt_boot_start(void);

/* Waits until the runtime is up, or will not be, but at most so long. */
void mt_boot_wait(unsigned limit_ms);

/* The Go runtime cannot go on (goend.h): nothing is drained any more, and the caller's thread takes over the drainer's
 * other duties. May not return. */
void mt_boot_go_ended(void);

/* A thread of the program ends that recorded something. Once the first one has left, the process ends with the last. */
void mt_boot_thread_ends(int32_t tid);

/* Starts a library thread, detached, with the caller's signal mask and descriptors. */
bool mt_boot_thread(void *(*run)(void *), size_t stack);

/* Gives the calling thread a descriptor table of its own, with nothing in it but three that lead to /dev/null
 * (close_range(2), CLOSE_RANGE_UNSHARE; unshare(2)). */
bool mt_boot_unshare_descriptors(void);

/* Whether the program's last thread has ended, and only the library's are left. */
bool mt_boot_is_alone(void);

/* Ends the process as it would have ended without the library. On the program's descriptors. */
_Noreturn void mt_boot_end_alone(void);
