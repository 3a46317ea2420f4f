#define _GNU_SOURCE
#include "device/sample.h"

#include <string.h>

#include "base/clock.h"
#include "base/sys.h"
#include "hooks/reserve.h"
#include "spool/dict.h"
#include "spool/region.h"
#include "spool/ring.h"

#define MT_ATTEMPTS 3
#define MT_ATTEMPT_PAUSE_NS 2000000

/* What must not change while the device is read. */
struct quiescence {
  uint64_t seq;   /* last order number */
  uint64_t calls; /* driver calls begun and ended, over all threads */
  bool quiet;     /* no call is under way */
};

static struct quiescence read_quiescence(const struct mt_ring *own) {
  struct quiescence s = {.seq = __atomic_load_n(&mt_header()->seq, __ATOMIC_SEQ_CST), .quiet = true};
  uint32_t used = __atomic_load_n(&mt_header()->rings_used, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < used; i++) {
    const struct mt_ring *ring = &mt_rings()[i];
    if (ring == own) continue;
    uint64_t calls = __atomic_load_n(&ring->calls, __ATOMIC_ACQUIRE);
    s.calls += calls;
    if (calls & 1 || __atomic_load_n(&ring->inflight, __ATOMIC_ACQUIRE)) s.quiet = false;
  }
  return s;
}

/* Each text once, so that the last one in the trace is the last one that held. */
static void note_share(const struct mt_nvml_share *share) {
  static const char *noted;
  if (!share->why_not || share->why_not == noted) return;
  mt_dict_info("nvml.share", share->why_not, strlen(share->why_not));
  noted = share->why_not;
}

struct readings {
  struct mt_nvml_memory memory;
  struct mt_nvml_share share;
  struct quiescence before;
  bool settled;
};

/* The memory is read on both sides of everything else: what no hook sees, such as a pool that shrinks or another
 * process, shows there. */
static bool read_device(const struct mt_sample *want, const struct mt_ring *own, struct readings *a) {
  struct mt_nvml_memory first;
  *a = (struct readings){0};
  if (!mt_nvml_memory(want->device, &first)) return false;
  mt_reserve_refresh_all();
  a->before = read_quiescence(own);
  if (want->share) {
    mt_nvml_share(want->device, (uint32_t)mt_sys_getpid(), &a->share);
    note_share(&a->share);
  }
  if (!mt_nvml_memory(want->device, &a->memory)) return false;
  struct quiescence after = read_quiescence(own);
  a->settled = a->before.quiet && after.quiet && after.seq == a->before.seq && after.calls == a->before.calls &&
               first.used == a->memory.used;
  return true;
}

static void fill(struct mt_record *r, const struct mt_sample *want, const struct readings *a, uint32_t occasion) {
  bool known = want->share && a->share.own_known && a->share.others_known;
  memset((char *)r + sizeof r->seq, 0, sizeof *r - sizeof r->seq);
  r->ticks = mt_clock_ticks();
  r->kind = MT_SAMPLE;
  r->device = (int8_t)want->ordinal;
  r->size = a->memory.used;
  r->reserved = a->memory.reserved;
  r->allocated = known ? a->share.own : 0;
  r->addr = known ? a->share.others : 0;
  r->stack = occasion;
  r->pystack = known ? 0 : MT_FLAG_SHARE_UNKNOWN;
}

/* A settled reading must draw the number right after the one that it saw: then its place in the trace is exact, and no
 * event can be drawn unseen in between. */
static bool draw_if_next(uint64_t seen) {
  return __atomic_compare_exchange_n(&mt_header()->seq, &seen, seen + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* Records the readings, if nothing happened since; otherwise only on the last attempt, and then the record is flagged
 * as unsettled. */
static enum mt_sample_result record(struct mt_thread *self, const struct mt_sample *want, const struct readings *a,
                                    bool last) {
  uint32_t occasion = mt_dict_intern(MT_DICT_STRING, want->occasion, strlen(want->occasion));
  struct mt_record *r = mt_record_open(self, MT_SAMPLE);
  if (!r) return MT_READING_LOST;
  uint64_t outer = mt_seq_begin(self), seq = 0;
  fill(r, want, a, occasion);
  bool settled = a->settled && draw_if_next(a->before.seq);
  if (settled)
    seq = a->before.seq + 1;
  else if (last) {
    r->pystack |= MT_FLAG_UNSETTLED;
    seq = mt_seq_draw();
  }
  if (seq)
    mt_record_commit(self, r, seq);
  else
    self->busy = 0; /* the slot stays the next one */
  mt_seq_end(self, outer);
  return settled ? MT_READING_SETTLED : MT_READING_UNSETTLED;
}

enum mt_sample_result mt_sample_take(const struct mt_sample *want, uint64_t *used) {
  struct readings a;
  for (int attempt = 1;; attempt++) {
    struct mt_thread *self = mt_thread_recording_now();
    if (!self) return MT_READING_OVER;
    if (!read_device(want, self->ring, &a)) return MT_READING_REFUSED;
    *used = a.memory.used;
    enum mt_sample_result result = record(self, want, &a, attempt == MT_ATTEMPTS && !want->will_retry);
    if (result != MT_READING_UNSETTLED || attempt == MT_ATTEMPTS) return result;
    mt_sys_sleep(MT_ATTEMPT_PAUSE_NS);
  }
}
