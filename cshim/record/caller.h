/* What a thread remembers of the last places that called. */
#pragma once

#include <stdint.h>

#include "base/thread.h"

/* Cache entry: return address -> original function, stack id. Belongs to the thread, valid until its next look-up. */
struct mt_recent *mt_recent_caller(struct mt_thread *self, uintptr_t caller);
