/* What a thread remembers of the last places that called. */
#pragma once

#include <stdint.h>

#include "base/thread.h"

/* What is remembered of a calling code address: the original it means, and its number as a stack. Belongs to the
 * thread, valid until its next look-up. */
struct mt_recent *mt_recent_caller(struct mt_thread *self, uintptr_t caller);
