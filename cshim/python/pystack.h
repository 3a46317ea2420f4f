/* Interns Python stacks by their raw frames. Internal to the Python walker. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "python/python.h"

/* Clears what was written into the last spool. */
void mt_pystack_start(void);

/* mt_python_intern. *persistent: the same frames will always be the same stack, so that a cached id need not be
 * checked. */
uint32_t mt_pystack_intern(const struct mt_pyraw *frames, unsigned count, enum mt_stack_end end, bool *persistent);
