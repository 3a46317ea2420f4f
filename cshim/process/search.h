/* A search for what refers to the program's tensors, with a bound on the time that the one who asks waits: the
 * interpreter's lock may be kept for as long as the program likes. */
#pragma once

#include "adapters/referrers.h"

/* On a thread of ours. Waits for the lock for so many milliseconds at most, and for the search for some seconds more.
 * The text of the answer stays until mt_search_over. NULL, or why there is none. */
const char *mt_search(struct mt_referrers *answer, uint32_t wait_ms);

void mt_search_over(void);
