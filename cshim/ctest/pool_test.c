/* Pools of the program's own: what include/memtrace.h promises. */
#define _GNU_SOURCE
#define MEMTRACE_IMPLEMENTATION
#include "../include/memtrace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/config.h"
#include "base/thread.h"
#include "check.h"
#include "oracle.h"

static struct oracle o;

static void record_into(const char *name) {
  const char *spool = check_output(name);
  check_event(1);
  CHECK(oracle_open(&o, spool));
}

static struct mt_record record_at(uint64_t seq) {
  struct oracle_record *records;
  struct mt_record found = {0};
  size_t n = oracle_records(&o, &records);
  for (size_t i = 0; i < n; i++)
    if (records[i].record.seq == seq) found = records[i].record;
  free(records);
  return found;
}

static void *at(uintptr_t address) { return (void *)address; }

static void check_record(uint64_t seq, uint8_t kind, uint64_t address, uint64_t size, uint64_t pool, const char *name) {
  struct mt_record r = record_at(seq);
  CHECK_EQ(r.kind, kind);
  CHECK_EQ(r.addr, address);
  CHECK_EQ(r.size, size);
  CHECK_EQ(r.owner, pool);
  CHECK(oracle_text_is(&o, (uint32_t)r.name, name));
}

static void blocks(void) {
  uint64_t early = memtrace_pool_create("early", 3);
  CHECK(early);
  CHECK_EQ(memtrace_pool_alloc(early, at(0x100), 8), MEMTRACE_OK); /* before the first call of CUDA */
  record_into("t.bin");
  uint64_t late = memtrace_pool_create("late", MEMTRACE_POOL_HOST);
  CHECK(late && late != early);
  CHECK_EQ(memtrace_tag_push("tag"), MEMTRACE_OK);
  CHECK_EQ(memtrace_pool_alloc(early, at(0x1000), 256), MEMTRACE_OK);
  CHECK_EQ(memtrace_pool_alloc(late, at(0x1000), (size_t)1 << 46), MEMTRACE_OK);
  CHECK_EQ(memtrace_pool_alloc(late, NULL, 256), MEMTRACE_OK);
  CHECK_EQ(memtrace_pool_alloc(late, at(0x2000), 0), MEMTRACE_OK);
  CHECK_EQ(memtrace_pool_free(late, NULL), MEMTRACE_OK);
  CHECK_EQ(memtrace_pool_free(early, at(0x1000)), MEMTRACE_OK);
  memtrace_pool_destroy(late);
  check_record(2, MT_ALLOC, 0x1000, 256, early, "early");
  check_record(3, MT_ALLOC, 0x1000, 1ull << 46, late, "late");
  check_record(4, MT_FREE, 0x1000, 0, early, "early");
  check_record(5, MT_DESTROY, late, 0, late, "late");
  CHECK_EQ(o.header->seq, 5);
  CHECK_EQ(record_at(2).device, 3);
  CHECK_EQ(record_at(3).device, MEMTRACE_POOL_HOST);
  CHECK(oracle_text_is(&o, record_at(2).tag, "tag"));
  CHECK(record_at(2).stack);
}

static void none(void) {
  char name[MEMTRACE_NAME_MAX + 2];
  memset(name, 'n', sizeof name);
  name[MEMTRACE_NAME_MAX + 1] = 0;
  record_into("t.bin");
  CHECK_EQ(memtrace_pool_create(NULL, 0), 0);
  CHECK_EQ(memtrace_pool_create("", 0), 0);
  CHECK_EQ(memtrace_pool_create(name, 0), 0);
  CHECK(memtrace_pool_create(name + 1, 0));
  uint64_t ended = memtrace_pool_create("ended", 0);
  memtrace_pool_destroy(ended);
  uint64_t no_pools[] = {0, 1, ended, ended + MEMTRACE_POOLS_MAX, UINT64_MAX};
  for (size_t i = 0; i < sizeof no_pools / sizeof *no_pools; i++) {
    CHECK_EQ(memtrace_pool_alloc(no_pools[i], at(0x1000), 8), MEMTRACE_ERR_POOL);
    CHECK_EQ(memtrace_pool_free(no_pools[i], at(0x1000)), MEMTRACE_ERR_POOL);
    memtrace_pool_destroy(no_pools[i]);
  }
  CHECK_EQ(o.header->seq, 2);
}

static void many(void) {
  static uint64_t pools[MEMTRACE_POOLS_MAX];
  record_into("t.bin");
  for (unsigned i = 0; i < MEMTRACE_POOLS_MAX; i++) CHECK((pools[i] = memtrace_pool_create("many", 0)));
  CHECK_EQ(memtrace_pool_create("one more", 0), 0);
  memtrace_pool_destroy(pools[77]);
  uint64_t again = memtrace_pool_create("again", 0);
  CHECK(again && again != pools[77]);
  CHECK_EQ(memtrace_pool_alloc(pools[77], at(0x1000), 8), MEMTRACE_ERR_POOL);
  CHECK_EQ(memtrace_pool_alloc(again, at(0x1000), 8), MEMTRACE_OK);
}

static void one_thread(uint64_t number) {
  for (uint64_t i = 0; i < 200; i++) {
    uint64_t pool = memtrace_pool_create("of a thread", 0);
    CHECK(pool);
    CHECK_EQ(memtrace_pool_alloc(pool, at(0x10000 * (number + 1) + 16 * i), 16), MEMTRACE_OK);
    if (i % 2) CHECK_EQ(memtrace_pool_free(pool, at(0x10000 * (number + 1) + 16 * i)), MEMTRACE_OK);
    memtrace_pool_destroy(pool);
  }
}

static void threads(void) {
  record_into("t.bin");
  check_threads(8, one_thread);
  CHECK_EQ(o.header->seq, 1 + 8 * 500);
}

static uint64_t shared;

static void in_child(void) {
  const char *spool = check_output("child.bin");
  CHECK_EQ(memtrace_pool_alloc(shared, at(0x3000), 8), MEMTRACE_OK); /* the child has not begun to record */
  check_event(1);
  CHECK_EQ(memtrace_pool_alloc(shared, at(0x3000), 8), MEMTRACE_OK);
  CHECK(oracle_open(&o, spool));
  check_record(2, MT_ALLOC, 0x3000, 8, shared, "shared");
}

static void forks(void) {
  if (!CHECK_FORKS_OF_THREADS) return check_skip("forks of a process with threads");
  record_into("t.bin");
  shared = memtrace_pool_create("shared", 0);
  CHECK_EQ(check_in_child(in_child), 0);
}

static void keeps_errno(void) {
  record_into("t.bin");
  errno = EDOM;
  uint64_t pool = memtrace_pool_create("p", 0);
  memtrace_pool_alloc(pool, at(0x1000), 8);
  memtrace_pool_free(pool, at(0x1000));
  memtrace_pool_destroy(pool);
  CHECK_EQ(errno, EDOM);
}

static void switched_off(void) {
  mt_config.disabled = true;
  CHECK_EQ(memtrace_pool_create("off", 0), 0);
}

static void asleep(void) {
  mt_recorder_set_phase(MT_ASLEEP);
  CHECK_EQ(memtrace_active(), 0);
  uint64_t pool = memtrace_pool_create("later", 0); /* what is recorded later may know it */
  CHECK(pool);
  CHECK_EQ(memtrace_pool_alloc(pool, at(0x1000), 8), MEMTRACE_OK);
}

int main(void) {
  static const struct check_case cases[] = {
      {"blocks", blocks},   {"none", none},        {"many", many},
      {"threads", threads}, {"forks", forks},      {"errno", keeps_errno},
      {"switched off", switched_off}, {"asleep", asleep},
  };
  return check_main("pool", cases, sizeof cases / sizeof *cases);
}
