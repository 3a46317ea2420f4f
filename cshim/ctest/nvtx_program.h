/* A program with NVTX, and a recording to look into. NVTX's side is played by a hand-made export table, so that every
 * call's arguments and answers are in the test's hands. One test program includes this once, first of all. */
#pragma once

#define MEMTRACE_IMPLEMENTATION
#include "nvtx/nvtx.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "check.h"
#include "oracle.h"
#include "process/recorder.h"

typedef void (*function)(void);
int InitializeInjectionNvtx2(const void *(*table)(uint32_t id));

/* What the header that programs include has: a pointer per function, and a table of where those pointers are. */
enum { CORE_SIZE = 16, CORE2_SIZE = 16 };
static function core[CORE_SIZE + 1], core2[CORE2_SIZE + 1];
static function *core_table[CORE_SIZE + 1], *core2_table[CORE2_SIZE + 1];
static unsigned core_size = CORE_SIZE, core2_size = CORE2_SIZE;
static uint32_t version_set;

static inline int table_of(uint32_t module, function ***table, unsigned *size) {
  if (module == 1) return *table = core_table, *size = core_size, 1;
  if (module == 5 && core2_size) return *table = core2_table, *size = core2_size, 1;
  return 0;
}

static inline void set_version(uint32_t version) { version_set = version; }

static struct {
  size_t size;
  int (*table_of)(uint32_t, function ***, unsigned *);
} callbacks = {sizeof callbacks, table_of};

static struct {
  size_t size;
  uint32_t version, reserved;
  void (*set)(uint32_t);
} version = {sizeof version, 3, 0, set_version};

static inline const void *export_table(uint32_t id) {
  return id == 1 ? (const void *)&callbacks : id == 3 ? (const void *)&version : NULL;
}

static inline int attach(void) {
  for (int i = 1; i <= CORE_SIZE; i++) core_table[i] = &core[i];
  for (int i = 1; i <= CORE2_SIZE; i++) core2_table[i] = &core2[i];
  return InitializeInjectionNvtx2(export_table);
}

/* Event attributes as programs fill them in. */
struct event {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t type;
  const void *message;
};
enum { ASCII = 1, UNICODE = 2, REGISTERED = 3 };

static inline struct event *event_of(int type, const void *message) {
  static __thread struct event e;
  e = (struct event){.version = 3, .size = sizeof e, .type = type, .message = message};
  return &e;
}

/* How many levels of a domain's ranges the thread's stack holds. */
static inline int levels(const void *domain) {
  uint32_t owner = mt_nvtx_owner(domain), n = 0;
  for (uint32_t i = 0; mt_self && i < mt_self->tags.depth; i++) n += mt_self->tags.owner[i] == owner;
  for (uint32_t i = 1; mt_self && mt_self->tags.beyond && i < MT_TAG_UNSTORED_OWNERS; i++)
    if (mt_self->tags.unstored[i].owner == owner) n += mt_self->tags.unstored[i].count;
  return (int)n;
}

/* Calls of the program, which gets the same answer in every case. These return the level in its domain that was pushed
 * or popped, or NOTHING. */
enum { NOTHING = -1 };
static inline int pushed(const void *domain, int before, int answer) {
  CHECK_EQ(answer, -2);
  return levels(domain) == before + 1 ? before : NOTHING;
}
static inline int popped(const void *domain, int before, int answer) {
  CHECK_EQ(answer, -2);
  return levels(domain) == before - 1 ? before - 1 : NOTHING;
}

static inline int push(const char *s) {
  int before = levels(NULL);
  return pushed(NULL, before, ((int (*)(const char *))core[9])(s));
}
static inline int push_wide(const wchar_t *s) {
  int before = levels(NULL);
  return pushed(NULL, before, ((int (*)(const wchar_t *))core[10])(s));
}
static inline int push_event(const struct event *e) {
  int before = levels(NULL);
  return pushed(NULL, before, ((int (*)(const struct event *))core[8])(e));
}
static inline int pop(void) {
  int before = levels(NULL);
  return popped(NULL, before, ((int (*)(void))core[11])());
}
static inline int domain_push(const void *d, const struct event *e) {
  int before = levels(d);
  return pushed(d, before, ((int (*)(const void *, const struct event *))core2[4])(d, e));
}
static inline int domain_pop(const void *d) {
  int before = levels(d);
  return popped(d, before, ((int (*)(const void *))core2[5])(d));
}
static inline void mark(const char *s) { ((void (*)(const char *))core[2])(s); }
static inline void mark_wide(const wchar_t *s) { ((void (*)(const wchar_t *))core[3])(s); }
static inline void range_start(const char *s) { CHECK_EQ(((uint64_t (*)(const char *))core[5])(s), 0); }
static inline void range_end(void) { ((void (*)(uint64_t))core[7])(0); }
static inline void domain_start(const void *d, const struct event *e) {
  CHECK_EQ(((uint64_t (*)(const void *, const struct event *))core2[2])(d, e), 0);
}
static inline void domain_end(const void *d) { ((void (*)(const void *, uint64_t))core2[3])(d, 0); }
static inline void domain_mark(const void *d, const struct event *e) {
  ((void (*)(const void *, const struct event *))core2[1])(d, e);
}
static inline const void *domain(const char *s) { return ((const void *(*)(const char *))core2[12])(s); }
static inline const void *domain_wide(const wchar_t *s) { return ((const void *(*)(const wchar_t *))core2[13])(s); }
static inline const void *keep(const void *d, const char *s) {
  return ((const void *(*)(const void *, const char *))core2[10])(d, s);
}
static inline const void *keep_wide(const void *d, const wchar_t *s) {
  return ((const void *(*)(const void *, const wchar_t *))core2[11])(d, s);
}

static struct oracle o;
static uint64_t events;

static inline void record_into(const char *name) {
  const char *spool = check_output(name);
  check_event(++events);
  CHECK(oracle_open(&o, spool));
}

/* The tag path of the thread's next event. */
static inline const char *tag_now(void) {
  struct oracle_record *records;
  check_event(++events);
  size_t n = oracle_records(&o, &records);
  const char *path = "missing";
  if (n) {
    uint32_t length = 0, tag = records[n - 1].record.tag;
    const char *text = oracle_entry(&o, tag, MT_DICT_STRING, &length);
    path = tag ? check_format("%.*s", (int)length, text) : "";
  }
  free(records);
  return path;
}

/* The names of all marks, joined by '|'. */
static inline const char *marks(void) {
  struct oracle_record *records;
  static char all[4096];
  size_t n = oracle_records(&o, &records);
  all[0] = 0;
  for (size_t i = 0; i < n; i++) {
    if (records[i].record.kind != MT_MARK) continue;
    uint32_t length = 0;
    const char *text = oracle_entry(&o, (uint32_t)records[i].record.name, MT_DICT_STRING, &length);
    strcat(strncat(all, text ? text : "?", text ? length : 1), "|");
  }
  free(records);
  return all;
}
