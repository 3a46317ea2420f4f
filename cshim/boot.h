/* The Go half's start: its runtime sleeps in the loaded library until the first event wants a drainer. */
#pragma once

#include <stdbool.h>

/* Starts the helper thread of this process. Recording does not depend on it: without a drainer the spool keeps everything up to its cap. */
void mt_boot_start(void);

/* Whether a drainer is starting or running, so that the end of the program is worth a wait. */
bool mt_boot_draining(void);

/* Has the helper thread look at once what there is to do off the hot path. Any thread. */
void mt_boot_turn(void);
