/* Per-thread single-producer rings of 64-byte records in chained segments. Reserve, fill, commit; when no slot is left
 * the thread waits for a moment (overflow.h), and then the newest record is dropped and counted; old ones are never
 * overwritten. The last segments are reserved for records that release memory: where a free is missing, its block seems
 * to stay live, and everything after it is wrong. */
#pragma once

#include "base/thread.h"
#include "spool/region.h"

/* Takes a ring and a first segment for the thread. False when none is left. */
bool mt_ring_acquire(struct mt_thread *self, uint32_t thread_id, int32_t tid);

/* Ends the thread's ring: the consumer drains the rest and recycles it. */
void mt_ring_retire(struct mt_thread *self);

/* Keeps some free segments ready, so that threads of the program need not create them. From one of the library's
 * threads. */
void mt_ring_preallocate(void);

/* Finds room where the present segment has none for this kind of record; NULL when there is none (counted as lost). */
struct mt_record *mt_ring_grow(struct mt_thread *self, uint8_t kind);

/* Draws the next order number. Between begin and end the thread announces a lower bound of what it has drawn, so that a
 * reader never believes a number to be missing that is only late. begin returns what end must restore: calls nest (a
 * free is open while the driver below makes events). */
static inline uint64_t mt_seq_begin(struct mt_thread *self) {
  uint64_t outer = self->ring->inflight;
  if (!outer) {
    uint64_t bound = __atomic_load_n(&mt_header()->seq, __ATOMIC_RELAXED) + 1;
    __atomic_store_n(&self->ring->inflight, bound, __ATOMIC_RELAXED);
  }
  return outer;
}

/* The locked add orders the announcement above before the number exists. */
static inline uint64_t mt_seq_draw(void) { return __atomic_add_fetch(&mt_header()->seq, 1, __ATOMIC_SEQ_CST); }

static inline void mt_seq_end(struct mt_thread *self, uint64_t outer) {
  __atomic_store_n(&self->ring->inflight, outer, __ATOMIC_RELEASE);
}

/* At both ends of a driver call that changes memory, so that readers can see whether one is under way: what the driver
 * has done already has no number yet. */
static inline void mt_ring_call(struct mt_thread *self) {
  __atomic_store_n(&self->ring->calls, self->ring->calls + 1, __ATOMIC_RELEASE);
}

/* Returns the slot to fill, or NULL (lost, counted). */
static inline struct mt_record *mt_ring_reserve(struct mt_thread *self, uint8_t kind) {
  struct mt_record *slot = self->next;
  return MT_LIKELY(slot < self->end) ? slot : mt_ring_grow(self, kind);
}

static inline void mt_ring_commit(struct mt_thread *self, struct mt_record *slot, uint64_t seq) {
  __atomic_store_n(&slot->seq, seq, __ATOMIC_RELEASE);
  self->next = slot + 1;
}

/* Opens a record of the calling thread, of an enum mt_kind, to be filled and committed. NULL means that it is lost, and
 * counted: no room is left, or a signal handler interrupted the thread while it wrote another one. */
static inline struct mt_record *mt_record_open(struct mt_thread *self, uint8_t kind) {
  if (MT_UNLIKELY(self->busy)) {
    __atomic_add_fetch(&mt_header()->lost_nested, 1, __ATOMIC_RELAXED);
    return NULL;
  }
  self->busy = 1;
  struct mt_record *record = mt_ring_reserve(self, kind);
  if (MT_UNLIKELY(!record)) self->busy = 0;
  return record;
}

static inline void mt_record_commit(struct mt_thread *self, struct mt_record *record, uint64_t seq) {
  mt_ring_commit(self, record, seq);
  self->busy = 0;
}
