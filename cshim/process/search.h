/* A search for what refers to the program's tensors, with a bound on the requester's wait: the program may keep the
 * interpreter's lock for any time. */
#pragma once

#include "adapters/referrers.h"

/* On a library thread. Waits for the lock for at most wait_ms, and for the search some seconds more. The text of the
 * answer lives until mt_search_over. NULL, or why there is none. */
const char *mt_search(struct mt_referrers *answer, uint32_t wait_ms);

void mt_search_over(void);

/* Automatic searches, with their result in the dictionary: what refers to tensors, or why that is unknown. At the first
 * refusal of PyTorch's allocator in a recording, on the allocating thread, which waits for a bounded time. */
void mt_search_at_refusal(void);

/* In the middle of the program, which has grown so far: its functions still have their variables. The latest counts. On
 * the allocating thread, which waits for nothing. */
void mt_search_while_growing(void);

/* On the library's polling thread: has the interpreter begin that search. */
void mt_search_poll(void);

/* Before the refusal is recorded, so that its reader waits for the result. */
void mt_search_announce(void);

/* The same before the interpreter ends, where memory grew and nothing was refused. On its main thread, locked. */
void mt_search_at_end(void);
