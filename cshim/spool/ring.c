#define _GNU_SOURCE
#include "spool/ring.h"

#include <errno.h>

#include "base/clock.h"
#include "base/sys.h"
#include "spool/overflow.h"

/* How many free segments are kept ready: making one goes through the file system, which takes longer than writing all
 * its records. */
#define MT_READY_SEGMENTS 16u

#define MT_REUSE_PROBES 64u /* at rings of ended threads, before a new one is taken */
#define MT_FULL_SEARCH_EVERY 256u

/* One part in so many of the room is held back. */
#define MT_RESERVED_PART 8u

/* Pops from the Treiber stack; the tag in the upper half makes a recycled head differ. */
static uint32_t pop_free_segment(struct mt_spool_header *h) {
  uint64_t head = __atomic_load_n(&h->free_segments, __ATOMIC_ACQUIRE);
  while ((uint32_t)head) {
    uint32_t number = (uint32_t)head;
    uint32_t next = __atomic_load_n(&mt_segment(number)->free_next, __ATOMIC_RELAXED);
    uint64_t want = ((head >> 32) + 1) << 32 | next;
    if (__atomic_compare_exchange_n(&h->free_segments, &head, want, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      __atomic_sub_fetch(&h->segments_free, 1, __ATOMIC_RELAXED);
      return number;
    }
  }
  return 0;
}

static void push_free_segment(struct mt_spool_header *h, uint32_t number) {
  uint64_t head = __atomic_load_n(&h->free_segments, __ATOMIC_RELAXED), want;
  do {
    __atomic_store_n(&mt_segment(number)->free_next, (uint32_t)head, __ATOMIC_RELAXED);
    want = ((head >> 32) + 1) << 32 | number;
  } while (!__atomic_compare_exchange_n(&h->free_segments, &head, want, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  __atomic_add_fetch(&h->segments_free, 1, __ATOMIC_RELAXED);
}

static uint32_t new_segment(struct mt_spool_header *h, uint32_t most) {
  uint32_t used = __atomic_load_n(&h->segments_used, __ATOMIC_RELAXED);
  do {
    if (used >= most) return 0;
    if (!mt_region_ensure_segment(used + 1)) return 0;
  } while (!__atomic_compare_exchange_n(&h->segments_used, &used, used + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  return used + 1;
}

void mt_ring_preallocate(void) {
  struct mt_spool_header *h = mt_header();
  uint32_t number;
  if (h->segments_first < 4 * MT_READY_SEGMENTS) return;
  while (__atomic_load_n(&h->segments_free, __ATOMIC_RELAXED) < MT_READY_SEGMENTS &&
         (number = new_segment(h, h->segments_first)))
    push_free_segment(h, number);
}

/* More segments are left than are reserved for records that release memory. */
static bool has_room(const struct mt_spool_header *h) {
  uint32_t used = __atomic_load_n(&h->segments_used, __ATOMIC_RELAXED),
           free = __atomic_load_n(&h->segments_free, __ATOMIC_RELAXED);
  return h->segments_max - used + free > h->segments_max / MT_RESERVED_PART;
}

static bool releases_memory(uint8_t kind) { return kind == MT_FREE || kind == MT_UNMAP || kind == MT_DESTROY; }

static uint32_t take_segment(uint32_t ring, bool all) {
  struct mt_spool_header *h = mt_header();
  uint32_t number = all || has_room(h) ? pop_free_segment(h) : 0;
  if (!number) number = new_segment(h, all ? h->segments_max : h->segments_max - h->segments_max / MT_RESERVED_PART);
  if (number) {
    struct mt_segment_head *segment = mt_segment(number);
    segment->ring = ring;
    __atomic_store_n(&segment->next, 0, __ATOMIC_RELAXED);
  }
  return number;
}

static void start_segment(struct mt_thread *self, uint32_t number) {
  struct mt_segment_head *segment = mt_segment(number);
  self->segment = segment;
  self->next = (struct mt_record *)segment + 1;
  self->end = (struct mt_record *)segment + MT_SEGMENT_SLOTS;
}

static bool claim(struct mt_ring *ring) {
  uint32_t idle = MT_RING_FREE;
  return __atomic_compare_exchange_n(&ring->state, &idle, MT_RING_ACTIVE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* A retired ring that the consumer has drained, among as many as are probed. */
static struct mt_ring *reuse_ring(struct mt_spool_header *h, uint32_t looks) {
  static uint32_t next; /* the drained ones lie together: threads end in the order in which they began, or nearly */
  uint32_t used = __atomic_load_n(&h->rings_used, __ATOMIC_ACQUIRE);
  if (looks > used) looks = used;
  while (looks-- && __atomic_load_n(&mt_region.rings_retired, __ATOMIC_RELAXED)) {
    struct mt_ring *ring = &mt_rings()[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % used];
    if (__atomic_load_n(&ring->state, __ATOMIC_RELAXED) != MT_RING_FREE || !claim(ring)) continue;
    __atomic_sub_fetch(&mt_region.rings_retired, 1, __ATOMIC_RELAXED);
    return ring;
  }
  return NULL;
}

/* A ring that was never used. */
static struct mt_ring *new_ring(struct mt_spool_header *h) {
  for (;;) {
    uint32_t used = __atomic_load_n(&h->rings_used, __ATOMIC_ACQUIRE);
    if (used >= h->rings_max ||
        !mt_region_ensure(&mt_region.rings_ready, h->rings_offset, (used + 1) * sizeof(struct mt_ring),
                          h->index_offset - h->rings_offset))
      return NULL;
    if (!__atomic_compare_exchange_n(&h->rings_used, &used, used + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      continue;
    if (claim(&mt_rings()[used])) return &mt_rings()[used];
  }
}

static struct mt_ring *find_ring(struct mt_spool_header *h) {
  static uint32_t misses; /* threads without a ring retry with every event, and few of them need to search all */
  struct mt_ring *ring = reuse_ring(h, MT_REUSE_PROBES);
  if (!ring) ring = new_ring(h);
  if (ring || __atomic_fetch_add(&misses, 1, __ATOMIC_RELAXED) % MT_FULL_SEARCH_EVERY) return ring;
  return reuse_ring(h, h->rings_max);
}

/* A first segment for a ring, waited for if need be. */
static uint32_t take_first_segment(struct mt_thread *self, uint32_t ring) {
  struct mt_overflow wait;
  uint32_t number = take_segment(ring, false);
  if (number || !mt_overflow_begin(&wait, self)) return number;
  while (!(number = take_segment(ring, false)) && mt_overflow_sleep(&wait)) continue;
  mt_overflow_end();
  return number;
}

bool mt_ring_acquire(struct mt_thread *self, uint32_t thread_id, int32_t tid) {
  struct mt_ring *ring = find_ring(mt_header());
  if (!ring) return false;
  uint32_t number = take_first_segment(self, (uint32_t)(ring - mt_rings()) + 1);
  if (!number) {
    __atomic_store_n(&ring->state, MT_RING_FREE, __ATOMIC_RELEASE);
    __atomic_add_fetch(&mt_region.rings_retired, 1, __ATOMIC_RELAXED);
    return false;
  }
  ring->inflight = 0;
  ring->calls += ring->calls & 1; /* a thread may have ended inside a call */
  ring->thread = thread_id;
  ring->tid = tid;
  start_segment(self, number);
  self->ring = ring;
  __atomic_store_n(&ring->first_segment, number, __ATOMIC_RELEASE);
  return true;
}

void mt_ring_retire(struct mt_thread *self) {
  __atomic_store_n(&self->ring->inflight, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&self->ring->state, MT_RING_DEAD, __ATOMIC_RELEASE);
  __atomic_add_fetch(&mt_region.rings_retired, 1, __ATOMIC_RELAXED);
}

static void wake_drainer(struct mt_spool_header *h) {
  uint32_t busy =
      __atomic_load_n(&h->segments_used, __ATOMIC_RELAXED) - __atomic_load_n(&h->segments_free, __ATOMIC_RELAXED);
  uint32_t wake_at = __atomic_load_n(&h->drain_wake_at, __ATOMIC_ACQUIRE);
  if (!wake_at || busy < wake_at) return;
  int error = errno;
  __atomic_add_fetch(&h->drain_wake, 1, __ATOMIC_RELEASE);
  mt_sys_futex_wake(&h->drain_wake, 1);
  errno = error;
}

/* Moves on to a new segment, of which only records that release memory may use a slot while no more than the reserve is
 * left. */
static bool next_segment(struct mt_thread *self, bool all) {
  bool room = has_room(mt_header());
  uint32_t number = take_segment((uint32_t)(self->ring - mt_rings()) + 1, all);
  if (!number) return false;
  struct mt_segment_head *full = self->segment;
  start_segment(self, number);
  if (!room) {
    self->held_end = self->end;
    self->end = self->next;
  }
  __atomic_store_n(&full->next, number, __ATOMIC_RELEASE);
  return true;
}

/* True if the thread's next slot may be used now. */
static bool find_slot(struct mt_thread *self, bool all) {
  if (!self->held_end) return next_segment(self, all);
  if (self->next < self->held_end && !has_room(mt_header())) return all;
  self->end = self->held_end;
  self->held_end = NULL;
  return self->next < self->end || next_segment(self, all);
}

/* A signal handler that interrupts the sleep may record. */
static bool wait_for_slot(struct mt_thread *self, bool all) {
  struct mt_overflow wait;
  bool found = false;
  if (!mt_overflow_begin(&wait, self)) return false;
  while (!(found = find_slot(self, all))) {
    self->busy = 0;
    bool again = mt_overflow_sleep(&wait);
    self->busy = 1;
    if (!again) break;
  }
  mt_overflow_end();
  return found;
}

/* Counts a dropped record. A free has drawn its number; another record would have drawn its own now. */
static void count_dropped(struct mt_ring *ring, bool all) {
  uint64_t *lost = all ? &ring->lost_frees : &ring->lost_others;
  if (!ring->lost_from) {
    uint64_t next = __atomic_load_n(&mt_header()->seq, __ATOMIC_RELAXED) + 1;
    ring->lost_from = ring->inflight && ring->inflight < next ? ring->inflight : next;
  }
  __atomic_store_n(lost, *lost + 1, __ATOMIC_RELEASE);
}

struct mt_record *mt_ring_grow(struct mt_thread *self, uint8_t kind) {
  struct mt_spool_header *h = mt_header();
  bool all = releases_memory(kind), found = find_slot(self, all);
  mt_clock_refresh(h);
  wake_drainer(h);
  if (found || wait_for_slot(self, all)) return self->next;
  count_dropped(self->ring, all);
  return NULL;
}
