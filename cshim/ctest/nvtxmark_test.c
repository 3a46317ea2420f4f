/* What NVTX has no stack for: marks, and ranges that begin in one thread and may end in another. */
#define _GNU_SOURCE
#include "nvtx_program.h"

/* Ranges of every kind get the same id, so an end is named where all open ranges of the domain have one name, and only
 * there. */
static void one_name(void) {
  attach();
  range_end();
  range_start("early");
  record_into("t.bin");
  range_end();
  range_start("load");
  range_start("load");
  range_end();
  range_end();
  range_end(); /* one too many */
  ((void (*)(uint64_t))core[7])(4711);
  range_start(NULL);
  range_end();
  CHECK_TEXT(marks(), "load begin|load begin|load end|load end|");
  CHECK_TEXT(tag_now(), "");
}

static void overlapping(void) {
  attach();
  record_into("t.bin");
  range_start("a");
  range_start("b");
  range_end();
  range_end();
  CHECK_TEXT(marks(), "a begin|b begin|range end|range end|");
  range_start("c"); /* nothing is open any more: names are certain again */
  range_end();
  CHECK_TEXT(marks(), "a begin|b begin|range end|range end|c begin|c end|");
}

static void of_domains(void) {
  attach();
  record_into("t.bin");
  const void *d = domain("D"), *e = domain("E");
  range_start("x");
  domain_start(d, event_of(ASCII, "y"));
  range_end();
  domain_start(e, event_of(ASCII, "z"));
  domain_end(d);
  domain_start(e, event_of(UNICODE, L"w"));
  domain_end(e);
  domain_end(e);
  domain_end((const void *)&o);
  CHECK_TEXT(marks(), "x begin|D:y begin|x end|E:z begin|D:y end|E:w begin|E:range end|E:range end|");
}

/* More domains than words to count their ranges in: a name may be missing, but none is wrong. */
static void of_many_domains(void) {
  enum { DOMAINS = 300 };
  attach();
  record_into("t.bin");
  const void *d[DOMAINS];
  for (int i = 0; i < DOMAINS; i++) domain_start(d[i] = domain(check_format("%d", i)), event_of(ASCII, "r"));
  for (int i = 0; i < DOMAINS; i++) {
    domain_end(d[i]);
    struct oracle_record *records;
    size_t n = oracle_records(&o, &records);
    uint32_t length = 0;
    const char *text = oracle_entry(&o, (uint32_t)records[n - 1].record.name, MT_DICT_STRING, &length);
    const char *got = check_format("%.*s", (int)length, text), *named = check_format("%d:r end", i);
    CHECK_TEXT(got, strcmp(got, named) ? check_format("%d:range end", i) : named);
    free(records);
  }
}

/* A range that the parent's recording has a name for is open in the child, where that name means something else. */
static void of_the_child(void) {
  const char *spool = check_output("child.bin");
  check_event(++events);
  CHECK(oracle_open(&o, spool));
  range_end();
  range_start("own");
  range_end();
  CHECK_TEXT(marks(), "own begin|own end|");
}

static void forks(void) {
  if (!CHECK_FORKS_OF_THREADS) return check_skip("forks of a process with threads");
  attach();
  record_into("t.bin");
  range_start("parent's");
  CHECK_EQ(check_in_child(of_the_child), 0);
  range_end();
  CHECK_TEXT(marks(), "parent's begin|parent's end|");
}

static void many_moments(uint64_t number) {
  (void)number;
  for (int i = 0; i < 2000; i++) {
    range_start("together");
    range_end();
  }
}

static void of_threads(void) {
  attach();
  record_into("t.bin");
  check_threads(4, many_moments);
  range_start("alone"); /* certain only if no range was lost in the count */
  range_end();
  struct oracle_record *records;
  uint32_t length = 0;
  size_t n = oracle_records(&o, &records), begins = 0, ends = 0;
  for (size_t i = 0; i < n; i++) {
    const char *text = records[i].record.kind == MT_MARK
                           ? oracle_entry(&o, (uint32_t)records[i].record.name, MT_DICT_STRING, &length)
                           : NULL;
    begins += text && length == 14 && !memcmp(text, "together begin", length);
    ends += text && length == 12 && !memcmp(text, "together end", length);
  }
  CHECK_EQ(begins, 8000);
  CHECK_EQ(ends, 8000);
  CHECK(n && (length = 0, oracle_entry(&o, (uint32_t)records[n - 1].record.name, MT_DICT_STRING, &length)) &&
        length == 9);
  free(records);
}

static void named_marks(void) {
  attach();
  mark("too early");
  record_into("t.bin");
  mark("one");
  mark(NULL);
  mark("");
  mark_wide(L"zw\u00f6lf");
  CHECK_TEXT(marks(), "one|zwölf|");
}

int main(void) {
  static const struct check_case cases[] = {
      {"marks", named_marks},
      {"one name", one_name},
      {"overlapping", overlapping},
      {"of domains", of_domains},
      {"of many domains", of_many_domains},
      {"forks", forks},
      {"of threads", of_threads},
  };
  return check_main("nvtxmark", cases, sizeof cases / sizeof *cases);
}
