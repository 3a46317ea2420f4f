#define _GNU_SOURCE
#include "allocator/remark.h"

#include "base/clock.h"
#include "record/capture.h"
#include "spool/ring.h"

bool mt_remark(const struct mt_remark *remark) {
  struct mt_thread *self = mt_self;
  if (!self || !mt_thread_recording(self)) return false;
  struct mt_stacks stacks =
      remark->frame ? mt_capture(self, remark->frame, remark->frame->caller, remark->kind) : (struct mt_stacks){0, 0};
  struct mt_record *r = mt_record_open(self, remark->kind);
  if (!r) return true;
  uint64_t outer = mt_seq_begin(self), seq = mt_seq_draw();
  *r = (struct mt_record){.ticks = mt_clock_ticks(),
                          .addr = remark->addr, .size = remark->size, .handle = remark->with, .stack = stacks.native,
                          .pystack = stacks.python, .tag = remark->frame ? self->tag : 0, .kind = remark->kind,
                          .device = (int8_t)remark->device, .name = remark->name};
  mt_record_commit(self, r, seq);
  mt_seq_end(self, outer);
  return true;
}
