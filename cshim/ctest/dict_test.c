/* The dictionary: interning, races, and its end. */
#define _GNU_SOURCE
#include "spool/dict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "check.h"
#include "oracle.h"
#include "process/recorder.h"

enum { THREADS = 8, TEXTS = 2000 };

static uint32_t ids[THREADS][TEXTS];

static const char *text_of(uint32_t i, char *text) {
  sprintf(text, "text %u %.*s", i, (int)(i % 40), "0123456789012345678901234567890123456789");
  return text;
}

static void interns(void) {
  struct oracle o;
  const char *spool = check_output("d.bin");
  check_event(1);
  CHECK(oracle_open(&o, spool));
  uint32_t a = mt_dict_intern(MT_DICT_STRING, "abc", 3), b = mt_dict_intern(MT_DICT_STRING, "abcd", 4);
  CHECK(a && b && a != b);
  CHECK_EQ(mt_dict_intern(MT_DICT_STRING, "abc", 3), a);
  CHECK(mt_dict_intern(MT_DICT_STACK, "abc", 3) != a); /* kinds are apart */
  CHECK(oracle_text_is(&o, a, "abc") && oracle_text_is(&o, b, "abcd"));
  CHECK(mt_dict_intern(MT_DICT_STRING, "", 0));
  CHECK_EQ(o.header->lost_dict, 0);
}

static void intern_all(uint64_t thread) {
  char text[80];
  for (uint32_t i = 0; i < TEXTS; i++) {
    uint32_t at = thread % 2 ? TEXTS - 1 - i : i;
    text_of(at, text);
    ids[thread][at] = mt_dict_intern(MT_DICT_STRING, text, strlen(text));
  }
}

static void races(void) {
  struct oracle o;
  char text[80];
  const char *spool = check_output("d.bin");
  check_event(1);
  CHECK(oracle_open(&o, spool));
  unsigned before = oracle_entries(&o, MT_DICT_STRING);
  check_threads(THREADS, intern_all);
  unsigned wrong = 0, changed = 0;
  for (uint32_t i = 0; i < TEXTS; i++) {
    text_of(i, text);
    for (int t = 0; t < THREADS; t++) wrong += !oracle_text_is(&o, ids[t][i], text);
    uint32_t settled = mt_dict_intern(MT_DICT_STRING, text, strlen(text));
    changed += !oracle_text_is(&o, settled, text);
  }
  unsigned added = oracle_entries(&o, MT_DICT_STRING) - before;
  CHECK_EQ(wrong, 0);
  CHECK_EQ(changed, 0);
  CHECK(added >= TEXTS && added <= TEXTS * THREADS); /* doubles happen in a race, and only there */
  check_threads(THREADS, intern_all);
  CHECK_EQ(oracle_entries(&o, MT_DICT_STRING) - before, added);
}

static void index_full(void) {
  struct oracle o;
  const char *spool = check_output("d.bin");
  check_event(1);
  CHECK(oracle_open(&o, spool));
  uint32_t first = mt_dict_intern(MT_DICT_STRING, "first", 5), got = 0, none = 0;
  for (uint32_t i = 0; i < MT_INDEX_MAX + 1000; i++) {
    uint32_t id = mt_dict_append(MT_DICT_STRING, &(struct mt_bytes){&i, sizeof i}, 1);
    if (!id) none++;
    else if (none) got++;
  }
  CHECK(none >= 1000);
  CHECK_EQ(got, 0); /* once full, always full */
  CHECK_EQ(o.header->lost_dict, none);
  CHECK_EQ(o.header->index_used, MT_INDEX_MAX);
  CHECK_EQ(mt_dict_intern(MT_DICT_STRING, "first", 5), first);
  check_event(2); /* its stack is known; without it the record would say none */
  CHECK_EQ(o.header->seq, 2);
}

static void data_full(void) {
  struct oracle o;
  static char block[100000];
  const char *spool = check_output("d.bin");
  mt_config.spool_max = 1 << 20;
  check_event(1);
  CHECK(oracle_open(&o, spool));
  unsigned fit = 0;
  while (mt_dict_append(MT_DICT_STRING, &(struct mt_bytes){block, sizeof block}, 1)) fit++;
  CHECK(fit >= 5 && fit <= 10);
  CHECK_EQ(o.header->lost_dict, 1);
  CHECK(o.header->data_used <= o.header->data_max);
  CHECK(mt_dict_append(MT_DICT_STRING, &(struct mt_bytes){"small", 5}, 1)); /* what fits is still taken */
}

/* Ever new paths to the same call: a million of them would fill the dictionary, and the events behind it had no stack
 * at all. */
#define PATH __attribute__((noinline, noclone))
static uint64_t paths;
PATH static void left(unsigned path, unsigned depth);
PATH static void right(unsigned path, unsigned depth);
static inline __attribute__((always_inline)) void walk_on(unsigned path, unsigned depth) {
  if (!depth) check_event(++paths);
  else if (path & 1) right(path >> 1, depth - 1);
  else left(path >> 1, depth - 1);
  __asm__ volatile("" ::: "memory"); /* no tail calls */
}
static void left(unsigned path, unsigned depth) { walk_on(path, depth); }
static void right(unsigned path, unsigned depth) { walk_on(path, depth); }

static void many_stacks(void) {
  enum { PATHS = 1 << 16 };
  struct oracle o;
  struct oracle_record *records;
  const char *spool = check_output("d.bin");
  mt_config.spool_max = 4 << 20, mt_config.spool_hard_max = 64 << 20;
  for (unsigned i = 0; i < PATHS; i++) left(i, 16);
  CHECK(oracle_open(&o, spool));
  size_t n = oracle_records(&o, &records), bare = 0, whole = 0;
  for (size_t i = 0; i < n; i++) {
    uint32_t length = 0;
    const uint64_t *stack = oracle_entry(&o, records[i].record.stack, MT_DICT_STACK, &length);
    if (!stack || length < 16) bare++;
    else whole += *stack != MT_STACK_DEPTH;
  }
  CHECK_EQ(n, PATHS);
  CHECK_EQ(bare, 0);
  CHECK_EQ(o.header->lost_dict, 0);
  CHECK(whole > 10000);
  free(records);
}

static void too_large(void) {
  check_output("d.bin");
  check_event(1);
  CHECK_EQ(mt_dict_append(MT_DICT_STRING, &(struct mt_bytes){"x", (size_t)1 << 40}, 1), 0);
}

static void about_the_process(void) {
  struct oracle o;
  const char *spool = check_output("d.bin");
  check_event(1);
  CHECK(oracle_open(&o, spool));
  bool argv = false, exe = false;
  for (uint32_t id = 1; id <= o.header->index_used; id++) {
    uint32_t length;
    const char *entry = oracle_entry(&o, id, MT_DICT_INFO, &length);
    if (!entry) continue;
    argv |= !strcmp(entry, "process.argv");
    exe |= !strcmp(entry, "process.exe");
  }
  CHECK(argv && exe);
  CHECK_EQ(oracle_entries(&o, MT_DICT_MODULE), 2); /* the program's, and the C library's, which called it */
  CHECK_EQ(oracle_entries(&o, MT_DICT_STACK), 1);
}

int main(void) {
  static const struct check_case cases[] = {
      {"interns", interns},         {"races", races},         {"index full", index_full},     {"data full", data_full},
      {"many stacks", many_stacks}, {"too large", too_large}, {"process", about_the_process},
  };
  return check_main("dict", cases, sizeof cases / sizeof *cases);
}
