/* The tag API: what include/memtrace.h promises. */
#define _GNU_SOURCE
#define MEMTRACE_IMPLEMENTATION
#include "../include/memtrace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "check.h"
#include "oracle.h"
#include "process/recorder.h"

static struct oracle o;

/* The tag path of the record with this number, "" for none. */
static const char *tag_of(uint64_t seq) {
  struct oracle_record *records;
  const char *path = "missing";
  size_t n = oracle_records(&o, &records);
  for (size_t i = 0; i < n; i++) {
    if (records[i].record.seq != seq) continue;
    uint32_t length = 0;
    const char *text = oracle_entry(&o, records[i].record.tag, MT_DICT_STRING, &length);
    path = records[i].record.tag ? check_format("%.*s", (int)length, text) : "";
  }
  free(records);
  return path;
}

static void record_into(const char *name) {
  const char *spool = check_output(name);
  check_event(1);
  CHECK(oracle_open(&o, spool));
}

static void before_the_start(void) {
  CHECK_EQ(memtrace_active(), 1);
  CHECK_EQ(memtrace_tag_push("outer"), MEMTRACE_OK);
  CHECK_EQ(memtrace_tag_push("in.ner"), MEMTRACE_OK);
  memtrace_mark("early"); /* what comes before the start is the first that is recorded */
  memtrace_step(1);
  record_into("t.bin");
  memtrace_tag_pop();
  check_event(2);
  memtrace_tag_pop();
  check_event(3);
  memtrace_tag_pop(); /* one too many does nothing */
  CHECK_EQ(memtrace_tag_push("again"), MEMTRACE_OK);
  check_event(4);
  for (uint64_t seq = 1; seq <= 3; seq++) CHECK_TEXT(tag_of(seq), "outer.in.ner");
  CHECK_TEXT(tag_of(4), "outer");
  CHECK_TEXT(tag_of(5), "");
  CHECK_TEXT(tag_of(6), "again");
  CHECK_EQ(o.header->seq, 6);
}

static void depth(void) {
  record_into("t.bin");
  for (int i = 0; i < MEMTRACE_TAG_DEPTH_MAX; i++) CHECK_EQ(memtrace_tag_push("x"), MEMTRACE_OK);
  for (int i = 0; i < 1000; i++) CHECK_EQ(memtrace_tag_push("deep"), MEMTRACE_ERR_DEPTH);
  check_event(2);
  CHECK_EQ(strlen(tag_of(2)), 2 * MEMTRACE_TAG_DEPTH_MAX - 1);
  for (int i = 0; i < 1000; i++) memtrace_tag_pop();
  check_event(3);
  CHECK_TEXT(tag_of(3), tag_of(2));
  for (int i = 0; i < MEMTRACE_TAG_DEPTH_MAX - 1; i++) memtrace_tag_pop();
  check_event(4);
  CHECK_TEXT(tag_of(4), "x");
}

static void names(void) {
  char name[MEMTRACE_NAME_MAX + 2];
  memset(name, 'n', sizeof name);
  name[MEMTRACE_NAME_MAX + 1] = 0;
  record_into("t.bin");
  CHECK_EQ(memtrace_tag_push("a"), MEMTRACE_OK);
  CHECK_EQ(memtrace_tag_push(NULL), MEMTRACE_ERR_NAME);
  CHECK_EQ(memtrace_tag_push(""), MEMTRACE_ERR_NAME);
  CHECK_EQ(memtrace_tag_push(name), MEMTRACE_ERR_NAME);
  CHECK_EQ(memtrace_tag_push("b"), MEMTRACE_OK);
  check_event(2);
  for (int i = 0; i < 4; i++) memtrace_tag_pop();
  check_event(3);
  name[MEMTRACE_NAME_MAX] = 0;
  CHECK_EQ(memtrace_tag_push(name), MEMTRACE_OK);
  memset(name, 'z', 10); /* names are copied */
  check_event(4);
  CHECK_TEXT(tag_of(2), "a.b");
  CHECK_TEXT(tag_of(3), "a");
  CHECK_EQ(strlen(tag_of(4)), 2 + MEMTRACE_NAME_MAX);
  CHECK(!strchr(tag_of(4), 'z'));
}

static void long_paths(void) {
  char name[MEMTRACE_NAME_MAX + 1];
  memset(name, 'p', sizeof name);
  name[MEMTRACE_NAME_MAX] = 0;
  record_into("t.bin");
  int fit = 0;
  for (; memtrace_tag_push(name) == MEMTRACE_OK; fit++) {
  }
  CHECK_EQ(fit, MEMTRACE_TAG_PATH_MAX / (MEMTRACE_NAME_MAX + 1));
  check_event(2);
  CHECK_EQ(strlen(tag_of(2)), (size_t)fit * (MEMTRACE_NAME_MAX + 1) - 1);
  memtrace_tag_pop();
  memtrace_tag_pop();
  check_event(3);
  CHECK_EQ(strlen(tag_of(3)), (size_t)(fit - 1) * (MEMTRACE_NAME_MAX + 1) - 1);
}

static void moments(void) {
  struct oracle_record *records;
  record_into("t.bin");
  memtrace_mark("moment");
  memtrace_mark("");
  memtrace_step(18446744073709551615ull);
  memtrace_epoch(3);
  CHECK_EQ(oracle_records(&o, &records), 4);
  CHECK_EQ(records[1].record.kind, MT_MARK);
  CHECK(oracle_text_is(&o, (uint32_t)records[1].record.name, "moment"));
  CHECK_EQ(records[2].record.kind, MT_STEP);
  CHECK_EQ(records[2].record.size, UINT64_MAX);
  CHECK_EQ(records[3].record.kind, MT_EPOCH);
  CHECK_EQ(records[3].record.size, 3);
  free(records);
}

static void in_the_child(void) {
  memtrace_tag_push("more");
  record_into("child.bin");
  CHECK_TEXT(tag_of(1), "kept.more");
  memtrace_tag_pop();
  check_event(2);
  CHECK_TEXT(tag_of(2), "kept");
}

static void forks(void) {
  if (!CHECK_FORKS_OF_THREADS) return check_skip("forks of a process with threads");
  record_into("t.bin");
  memtrace_tag_push("kept");
  CHECK_EQ(check_in_child(in_the_child), 0);
  check_event(2);
  CHECK_TEXT(tag_of(2), "kept");
  CHECK_EQ(o.header->seq, 2);
}

static void own_stack(uint64_t number) {
  const char *name = check_format("thread %llu", (unsigned long long)number);
  char copy[64];
  strcpy(copy, name);
  for (int i = 0; i < 200; i++) {
    memtrace_tag_push(copy);
    memtrace_tag_push("inner");
    check_event(number + 100);
    memtrace_tag_pop();
    memtrace_tag_pop();
  }
}

static void threads(void) {
  struct oracle_record *records;
  record_into("t.bin");
  memtrace_tag_push("not inherited");
  for (uint64_t i = 0; i < 4; i++) own_stack(i); /* the texts are made once, before threads share check_format */
  memtrace_tag_pop();
  check_threads(1, own_stack);
  size_t n = oracle_records(&o, &records);
  CHECK_EQ(n, 1 + 5 * 200);
  uint32_t first = records[1].record.tag, last = records[n - 1].record.tag;
  CHECK(oracle_text_is(&o, first, "not inherited.thread 0.inner"));
  CHECK(oracle_text_is(&o, last, "thread 0.inner"));
  free(records);
}

static void keeps_errno(void) {
  errno = 4711;
  memtrace_tag_push("a");
  CHECK_EQ(errno, 4711);
  record_into("t.bin");
  errno = 4711;
  for (int i = 0; i < 100; i++) memtrace_tag_push(check_format("level %d", i));
  memtrace_mark("m");
  memtrace_step(1);
  memtrace_tag_pop();
  CHECK_EQ(errno, 4711);
}

static void switched_off(void) {
  mt_config.disabled = true;
  CHECK_EQ(memtrace_active(), 0);
  CHECK_EQ(memtrace_tag_push("a"), MEMTRACE_ERR_FULL);
  memtrace_tag_pop();
  memtrace_mark("m");
  check_event(1);
  CHECK_EQ(mt_epoch_page->epoch, 0);
}

int main(void) {
  static const struct check_case cases[] = {
      {"before the start", before_the_start},
      {"depth", depth},
      {"names", names},
      {"long paths", long_paths},
      {"moments", moments},
      {"forks", forks},
      {"threads", threads},
      {"errno", keeps_errno},
      {"switched off", switched_off},
  };
  return check_main("tag", cases, sizeof cases / sizeof *cases);
}
