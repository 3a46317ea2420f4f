/* Rings: what threads say they recorded against what the oracle finds. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/config.h"
#include "check.h"
#include "oracle.h"
#include "spool/region.h"
#include "spool/ring.h"

enum { THREADS = 8, EVENTS = 20000, HELD = 64 / 8 /* segments held back of a spool of 1 MiB */, PER_SEGMENT = 255 };

static uint64_t events_each = EVENTS;
static uint64_t base;

/* An address tells the thread and the count. */
static void record(uint64_t thread) {
  for (uint64_t i = 1; i <= events_each; i++) check_event(base + (thread << 32) + i);
}

/* Every thread's events must be there in order from the first on, without a hole; returns their number. Numbers rise,
 * and are dense if nothing was lost. */
static size_t check_records(struct oracle_record *records, size_t n, bool dense) {
  uint64_t next[THREADS + 1] = {0};
  size_t wrong = 0, holes = 0;
  for (size_t i = 0; i < n; i++) {
    uint64_t thread = records[i].record.addr >> 32 & 0xff, number = records[i].record.addr & 0xffffffff;
    if (thread > THREADS || number != ++next[thread]) wrong++;
    if (i && records[i].record.seq != records[i - 1].record.seq + 1) holes++;
  }
  CHECK_EQ(wrong, 0);
  if (dense) CHECK_EQ(holes, 0);
  return n;
}

static void many_threads(void) {
  struct oracle o;
  struct oracle_record *records;
  const char *spool = check_output("r.bin");
  check_threads(THREADS, record);
  CHECK(oracle_open(&o, spool));
  size_t n = oracle_records(&o, &records);
  CHECK_EQ(check_records(records, n, true), THREADS * EVENTS);
  CHECK_EQ(records[0].record.seq, 1);
  CHECK_EQ(records[n - 1].record.seq, o.header->seq);
  CHECK_EQ(oracle_lost(&o) + o.header->lost_no_ring + o.header->lost_nested + o.header->lost_dict, 0);
  CHECK_EQ(oracle_entries(&o, MT_DICT_THREAD), THREADS);
  for (uint32_t i = 0; i < o.header->rings_used; i++)
    CHECK_EQ(((struct mt_ring *)(o.base + o.header->rings_offset))[i].inflight, 0);
  free(records);
}

static void overflow(void) {
  struct oracle o;
  struct oracle_record *records;
  const char *spool = check_output("r.bin");
  mt_config.spool_max = mt_config.spool_hard_max = 1 << 20; /* 64 segments for 160000 events */
  check_threads(THREADS, record);
  CHECK(oracle_open(&o, spool));
  size_t n = oracle_records(&o, &records);
  check_records(records, n, false); /* the oldest are kept */
  CHECK(n > 8000 && n < THREADS * EVENTS);
  CHECK_EQ(n + oracle_lost(&o) + o.header->lost_no_ring, THREADS * EVENTS);
  free(records);

  /* Room that is given back is used again, by threads of any age. */
  oracle_drain(&o, &records);
  free(records);
  uint64_t before = oracle_lost(&o) + o.header->lost_no_ring;
  events_each = 500;
  check_threads(4, record);
  n = oracle_records(&o, &records);
  CHECK_EQ(check_records(records, n, true), 4 * 500);
  CHECK_EQ(oracle_lost(&o) + o.header->lost_no_ring, before);
  free(records);
}

/* A spool that is full grows beyond its first size, by pieces mapped where there is room, up to the second limit. */
static void grows(void) {
  struct oracle o;
  struct oracle_record *records;
  const char *spool = check_output("r.bin");
  mt_config.spool_max = 1 << 20, mt_config.spool_hard_max = 40 << 20;
  events_each = 60000;
  check_threads(THREADS, record);
  CHECK(oracle_open(&o, spool));
  size_t n = oracle_records(&o, &records);
  CHECK_EQ(check_records(records, n, true), THREADS * events_each);
  CHECK_EQ(oracle_lost(&o) + o.header->lost_no_ring, 0);
  CHECK(o.header->segments_used > 64 + MT_EXTENT_SEGMENTS && o.header->segments_used <= o.header->segments_max);
  CHECK(o.size > o.header->file_size && o.size < 52 << 20);
  free(records);
  oracle_close(&o);

  check_threads(THREADS, record); /* these do not fit */
  CHECK(oracle_open(&o, spool));
  CHECK(o.header->segments_used <= o.header->segments_max);
  n = oracle_records(&o, &records);
  CHECK(oracle_lost(&o));
  CHECK_EQ(n + oracle_lost(&o) + o.header->lost_no_ring, 2 * THREADS * events_each);
  CHECK(o.size < 52 << 20);
  free(records);
}

static const struct mt_ring *first_ring(const struct oracle *o) {
  return (const struct mt_ring *)(o->base + o->header->rings_offset);
}

static uint64_t lost_frees(const struct oracle *o) { return first_ring(o)->lost_frees; }

/* Where records have to go, allocations go first: the last room takes frees alone, and what is left of it serves all
 * again when there is more. */
static void held_back(void) {
  enum { FITS = (64 - HELD) * PER_SEGMENT, FREES = HELD * PER_SEGMENT };
  struct oracle o;
  struct oracle_record *records;
  const char *spool = check_output("r.bin");
  mt_config.spool_max = mt_config.spool_hard_max = 1 << 20;
  uint64_t i = 0;
  for (; i < FITS + 100; i++) check_event(i + 1);
  CHECK(oracle_open(&o, spool));
  CHECK_EQ(oracle_lost(&o), 100);
  CHECK_EQ(first_ring(&o)->lost_from, FITS + 1); /* what was lost drew no numbers */
  for (; i < FITS + 200; i++) check_free(i + 1);
  check_event(1);
  CHECK_EQ(oracle_lost(&o), 101);
  size_t n = oracle_drain(&o, &records); /* all but the frees' segment, which is not used up */
  CHECK_EQ(n, FITS + 100);
  free(records);
  for (uint64_t k = 0; k < 1000; k++) check_event(++i);
  CHECK_EQ(oracle_lost(&o), 101);
  n = oracle_drain(&o, &records);
  CHECK_EQ(n, 1000);
  free(records);

  while (oracle_lost(&o) == 101) check_event(++i);
  for (uint64_t k = 0; k < FREES + 500; k++) check_free(++i);
  CHECK_EQ(oracle_lost(&o), 102 + lost_frees(&o));
  CHECK(lost_frees(&o) >= 500 && lost_frees(&o) < 500 + 2 * PER_SEGMENT);
  CHECK_EQ(first_ring(&o)->lost_from, FITS + 1);
}

/* More threads at once than there are segments: those left over are counted, and do not fill the dictionary with their
 * names. */
static void arrive(uint64_t thread) {
  static uint32_t arrived;
  check_event((thread << 32) + 1);
  __atomic_add_fetch(&arrived, 1, __ATOMIC_RELEASE);
  while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < 100) usleep(100);
  for (uint64_t i = 2; i <= 50; i++) check_event((thread << 32) + i);
}

static void no_ring(void) {
  struct oracle o;
  struct oracle_record *records;
  const char *spool = check_output("r.bin");
  mt_config.spool_max = mt_config.spool_hard_max = 1 << 20;
  check_threads(100, arrive);
  CHECK(oracle_open(&o, spool));
  size_t n = oracle_records(&o, &records);
  CHECK_EQ(n, (64 - HELD) * 50);
  CHECK_EQ(o.header->lost_no_ring, (100 - 64 + HELD) * 50);
  CHECK_EQ(o.header->lost_threads, 100 - 64 + HELD);
  CHECK_EQ(oracle_entries(&o, MT_DICT_THREAD), 100);
  free(records);
}

static struct oracle drained;
static uint64_t taken;
static uint32_t finished;
static void drain_beside(uint64_t number) {
  if (number) {
    for (int round = 0; round < 30; round++) check_threads(4, record);
    __atomic_store_n(&finished, 1, __ATOMIC_RELEASE);
    return;
  }
  for (bool last = false;;) {
    struct oracle_record *records;
    last = __atomic_load_n(&finished, __ATOMIC_ACQUIRE);
    taken += oracle_drain(&drained, &records);
    free(records);
    if (last) break;
    usleep(200);
  }
}

/* Threads come and go while a drainer recycles their rings and segments: nothing is taken twice or lost uncounted. */
static void churn(void) {
  check_output("r.bin");
  mt_config.spool_max = mt_config.spool_hard_max = 4 << 20;
  events_each = 1000;
  base = 1ull << 48;
  check_event(1);
  CHECK(oracle_attach(&drained, mt_region.base, mt_region.size));
  check_threads(2, drain_beside);
  uint64_t lost = oracle_lost(&drained) + drained.header->lost_no_ring;
  CHECK_EQ(taken + lost, 30 * 4 * 1000 + 1);
  CHECK_EQ(drained.header->seq + lost, 30 * 4 * 1000 + 1);
  CHECK(drained.header->rings_used < 4 * 30);
}

static void nested(void) {
  struct oracle o;
  const char *spool = check_output("r.bin");
  check_event(1);
  mt_self->busy = 1; /* as if a signal had come in the middle of a record */
  check_event(2);
  mt_self->busy = 0;
  check_event(3);
  CHECK(oracle_open(&o, spool));
  CHECK_EQ(o.header->lost_nested, 1);
  CHECK_EQ(o.header->seq, 2);
}

/* While numbers are drawn and not committed, the ring announces a bound that is not above the first of them. */
static void announced(void) {
  check_output("r.bin");
  check_event(1);
  struct mt_thread *self = mt_thread_get();
  CHECK_EQ(self->ring->inflight, 0);
  uint64_t outer = mt_seq_begin(self), first = mt_seq_draw();
  CHECK(self->ring->inflight && self->ring->inflight <= first);
  uint64_t bound = self->ring->inflight, inner = mt_seq_begin(self);
  mt_seq_draw();
  CHECK_EQ(self->ring->inflight, bound);
  mt_seq_end(self, inner);
  CHECK_EQ(self->ring->inflight, bound);
  mt_seq_end(self, outer);
  CHECK_EQ(self->ring->inflight, 0);
}

static void child_records(void) {
  for (uint64_t i = 0; i < 10; i++) check_event(i + 1);
}

static void forks(void) {
  struct oracle o, own;
  const char *spool = check_output("r.bin");
  if (!CHECK_FORKS_OF_THREADS) return check_skip("forks of a process with threads");
  mt_config.log_level = 0;
  check_event(1);
  CHECK(oracle_open(&o, spool));
  struct mt_spool_header before = *o.header;
  CHECK_EQ(check_in_child(child_records), 0);
  CHECK_EQ(o.header->seq, before.seq); /* the parent's spool did not notice */
  CHECK_EQ(o.header->rings_used, before.rings_used);
  CHECK_EQ(o.header->segments_used, before.segments_used);
  char *end = mt_config.output + strlen(mt_config.output) - 4;
  CHECK(oracle_open(&own, check_format("%.*s.1.bin.spool", (int)(end - mt_config.output), mt_config.output)));
  CHECK_EQ(own.header->seq, 10);
  CHECK(own.header->pid != o.header->pid);
  check_event(2);
  CHECK_EQ(o.header->seq, 2);
}

static void first_call(uint64_t thread) { check_event((thread << 32) + 1); }
static void start_together(void) { check_threads(THREADS, first_call); }

/* Threads of one process make its first call at once, in a forked child too: one start, one spool. */
static void starts_once(void) {
  struct oracle o;
  struct oracle_record *records;
  mt_config.log_level = 0;
  for (int round = 0; round < 50; round++) {
    const char *spool = check_output(check_format("s%d.bin", round));
    if (round % 2) CHECK_EQ(check_in_child(start_together), 0);
    else check_in_child(start_together);
    CHECK(oracle_open(&o, spool));
    size_t n = oracle_records(&o, &records);
    CHECK_EQ(n, THREADS);
    CHECK_EQ(access(check_format("%.*s.1.bin", (int)strlen(mt_config.output) - 4, mt_config.output), F_OK), -1);
    free(records);
    oracle_close(&o);
    if (round == 24 && CHECK_FORKS_OF_THREADS) check_event(1); /* from here on the children are those of a recorder */
  }
}

static void keeps_errno(void) {
  check_output("r.bin");
  mt_config.spool_max = mt_config.spool_hard_max = 1 << 20;
  for (uint64_t i = 1; i < 40000; i++) {
    errno = 4711;
    check_event(i);
    if (errno != 4711) {
      CHECK_EQ(errno, 4711);
      break;
    }
  }
  CHECK_EQ(errno, 4711);
}

int main(void) {
  static const struct check_case cases[] = {
      {"many threads", many_threads},
      {"overflow", overflow},
      {"grows", grows},
      {"held back", held_back},
      {"no ring", no_ring},
      {"churn", churn},
      {"nested", nested},
      {"announced", announced},
      {"forks", forks},
      {"starts once", starts_once},
      {"errno", keeps_errno},
  };
  return check_main("ring", cases, sizeof cases / sizeof *cases);
}
