/* Events of torch's allocator other than its blocks, as records. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"

struct mt_allocator_event {
  uint8_t kind; /* enum mt_kind */
  int device;
  uint64_t addr, size, handle, name; /* as the kind has them: struct mt_record */
  const struct mt_frame *frame;    /* of the function whose caller's stacks are recorded; NULL: none */
};

/* Writes one if the calling thread records; never begins a recording. */
bool mt_allocator_record(const struct mt_allocator_event *event);
