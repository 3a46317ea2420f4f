#include "spool/namerow.h"

#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "spool/ring.h"

static void write_row(struct mt_thread *self, const struct mt_name_row *row) {
  struct mt_record *r = mt_record_open(self, MT_NAME);
  if (!r) return;
  uint64_t outer = mt_seq_begin(self), seq = mt_seq_draw();
  memset((char *)r + sizeof r->seq, 0, sizeof *r - sizeof r->seq);
  r->ticks = mt_clock_ticks();
  r->addr = row->address;
  r->size = row->size;
  r->handle = row->object;
  r->name = row->name;
  r->api = (uint16_t)row->category;
  r->kind = MT_NAME;
  r->device = -1;
  mt_record_commit(self, r, seq);
  mt_seq_end(self, outer);
}

size_t mt_name_rows(struct mt_thread *self, const char *rows, size_t size, const char *places, size_t room) {
  struct mt_name_row row;
  uint64_t epoch;
  size_t written = 0, count = size < sizeof epoch ? 0 : (size - sizeof epoch) / sizeof row;
  if (!count) return 0;
  memcpy(&epoch, rows, sizeof epoch);
  if (!epoch || epoch != __atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_ACQUIRE)) return 0;
  if (places && count > room / sizeof row.address) count = room / sizeof row.address;
  for (size_t i = 0; i < count; i++) {
    memcpy(&row, rows + sizeof epoch + i * sizeof row, sizeof row);
    if (places) memcpy(&row.address, places + i * sizeof row.address, sizeof row.address);
    if ((places && !row.address) || !row.category || row.category > UINT16_MAX) continue;
    write_row(self, &row);
    written++;
  }
  return written;
}
