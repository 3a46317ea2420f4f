/* What torch's allocator is told and does beside its blocks, as records. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"

struct mt_remark {
  uint8_t kind; /* enum mt_kind */
  int device;
  uint64_t addr, size, with, name; /* as the kind has them: struct mt_record */
  const struct mt_frame *frame;    /* of the function whose caller's stacks are told; NULL: none are */
};

/* Writes one if the calling thread records; otherwise nothing happens, and no recording begins. */
bool mt_remark(const struct mt_remark *remark);
