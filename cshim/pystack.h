/* Python stacks that were met, by their raw frames. Internal to the Python walker. */
#pragma once

/* Forgets what was written into the last spool. */
void mt_pystack_start(void);
