#define _GNU_SOURCE
#include "allocator/waiting.h"

#include "allocator/place.h"
#include "allocator/remark.h"
#include "hooks/hooks.h"

/* Before the report of the block, of which nothing is known yet. */
static void recorded(uint64_t event, uint64_t stream) {
  struct mt_thread *self = mt_self;
  if (!self || !mt_thread_recording(self)) return;
  mt_place_begin();
  if (self->waits < MT_WAITS_MAX) self->wait[self->waits].event = event, self->wait[self->waits].stream = stream;
  self->waits++;
}

static void completed(uint64_t event) { mt_remark(&(struct mt_remark){.kind = MT_COMPLETE, .device = -1, .with = event}); }

void mt_waiting_watch(struct mt_range records, const struct mt_range completes[2]) {
  static struct mt_event_watch watch;
  watch = (struct mt_event_watch){.records = records, .completes = {completes[0], completes[1]}, .recorded = recorded, .completed = completed};
  mt_event_watch(&watch);
}

/* Events before anything but a free are those of blocks that were freed while a graph was captured, when no event may be asked about: whose they are is not known. */
void mt_waiting_tell(struct mt_thread *self, uint8_t kind, uint64_t address, uint64_t size, int device) {
  uint32_t count = self->waits < MT_WAITS_MAX ? self->waits : MT_WAITS_MAX;
  self->waits = 0;
  if (kind != MT_FREE) address = size = 0;
  for (uint32_t i = 0; i < count; i++)
    mt_remark(&(struct mt_remark){.kind = MT_WAIT, .device = device, .addr = address, .size = size, .with = self->wait[i].event, .name = self->wait[i].stream});
}
