/* What torch's allocator is told and does beside its blocks, as records. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"

struct mt_allocator_event {
  uint8_t kind; /* enum mt_kind */
  int device;
  uint64_t addr, size, handle, name; /* as the kind has them: struct mt_record */
  const struct mt_frame *frame;    /* of the function whose caller's stacks are told; NULL: none are */
};

/* Writes one if the calling thread records; otherwise nothing happens, and no recording begins. */
bool mt_allocator_record(const struct mt_allocator_event *event);
