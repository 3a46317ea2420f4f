#define _GNU_SOURCE
#include "allocator/event.h"

#include "base/clock.h"
#include "record/capture.h"
#include "spool/ring.h"

bool mt_allocator_record(const struct mt_allocator_event *event) {
  struct mt_thread *self = mt_self;
  if (!self || !mt_thread_recording(self)) return false;
  struct mt_stacks stacks =
      event->frame ? mt_capture(self, event->frame, event->frame->caller, event->kind) : (struct mt_stacks){0, 0};
  struct mt_record *r = mt_record_open(self, event->kind);
  if (!r) return true;
  uint64_t outer = mt_seq_begin(self), seq = mt_seq_draw();
  *r = (struct mt_record){.ticks = mt_clock_ticks(),
                          .addr = event->addr, .size = event->size, .handle = event->handle, .stack = stacks.native,
                          .pystack = stacks.python, .tag = event->frame ? self->tag : 0, .kind = event->kind,
                          .device = (int8_t)event->device, .name = event->name};
  mt_record_commit(self, r, seq);
  mt_seq_end(self, outer);
  return true;
}
