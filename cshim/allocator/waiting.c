#define _GNU_SOURCE
#include "allocator/waiting.h"

#include "allocator/place.h"
#include "allocator/event.h"
#include "hooks/hooks.h"

/* Before the report of the block, of which nothing is known yet. */
static void on_event_recorded(uint64_t event, uint64_t stream) {
  struct mt_thread *self = mt_self;
  if (!self || !mt_thread_recording(self)) return;
  mt_place_begin();
  if (self->waits < MT_WAITS_MAX) self->wait[self->waits].event = event, self->wait[self->waits].stream = stream;
  self->waits++;
}

/* An event that is complete before its block was reported belongs to a block that was freed during a graph capture,
 * when events may not be queried. */
static bool drop_wait(struct mt_thread *self, uint64_t event) {
  uint32_t count = self->waits < MT_WAITS_MAX ? self->waits : MT_WAITS_MAX;
  for (uint32_t i = 0; i < count; i++) {
    if (self->wait[i].event != event) continue;
    self->wait[i] = self->wait[count - 1];
    self->waits = count - 1;
    return true;
  }
  return false;
}

static void on_event_completed(uint64_t event) {
  struct mt_thread *self = mt_self;
  if (!self || !mt_thread_recording(self)) return;
  if (self->waits && drop_wait(self, event))
    mt_allocator_record(&(struct mt_allocator_event){.kind = MT_WAIT, .device = -1, .handle = event});
  mt_allocator_record(&(struct mt_allocator_event){.kind = MT_COMPLETE, .device = -1, .handle = event});
}

void mt_waiting_watch(struct mt_range records, const struct mt_range completes[2]) {
  static struct mt_event_watch watch;
  watch = (struct mt_event_watch){.records = records,
                                  .completes = {completes[0], completes[1]},
                                  .recorded = on_event_recorded,
                                  .completed = on_event_completed};
  mt_event_watch(&watch);
}

/* Drops events before anything but a free: their block is unknown. */
void mt_waiting_record(struct mt_thread *self, uint8_t kind, uint64_t address, uint64_t size, int device) {
  uint32_t count = self->waits < MT_WAITS_MAX ? self->waits : MT_WAITS_MAX;
  self->waits = 0;
  if (kind != MT_FREE) address = size = 0;
  for (uint32_t i = 0; i < count; i++)
    mt_allocator_record(&(struct mt_allocator_event){.kind = MT_WAIT,
                                  .device = device, .addr = address, .size = size, .handle = self->wait[i].event,
                                  .name = self->wait[i].stream});
}
