#define _GNU_SOURCE
/* The functions that NVTX calls, and how they get into its tables. Every library that uses NVTX has tables of its own
 * and attaches by itself. Nothing here allocates, locks or starts a recording; what is not in the lists below (names of
 * threads, categories, resources, synchronization) stays without effect, as it is without us. */
#include "nvtx/nvtx.h"

#include <errno.h>
#include <string.h>

#include "base/thread.h"
#include "record/tag.h"

/* Parts of the NVTX injection interface, declared here without its headers (NVTX 3, nvtxDetail/nvtxTypes.h). */
#define MT_NVTX_VERSION 3
#define MT_NVTX_NOT_TRACKED \
  (-2) /* NVTX_NO_PUSH_POP_TRACKING, the result of push and pop without a tool: a program may print it, so it stays */
#define MT_NVTX_NO_RANGE 0u      /* likewise what the start of a range answers */
enum { MT_NVTX_TABLE_CALLBACKS = 1, MT_NVTX_TABLE_VERSION = 3 };
enum { MT_NVTX_CORE = 1, MT_NVTX_CORE2 = 5 };
enum { MT_NVTX_ASCII = 1, MT_NVTX_UNICODE = 2, MT_NVTX_REGISTERED = 3 };

typedef void (*nvtx_function)(void);

struct nvtx_callbacks {
  size_t size;
  int (*table_of)(uint32_t module, nvtx_function ***table,
                  unsigned *count); /* table[id] points to the pointer that the program calls through */
};

struct nvtx_version {
  size_t size;
  uint32_t version, reserved;
  void (*set)(uint32_t version);
};

/* Event attributes; only the first size bytes exist. */
struct nvtx_attributes {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  union {
    const char *ascii;
    const wchar_t *unicode;
    const void *registered;
  } message;
};
_Static_assert(sizeof(struct nvtx_attributes) == 48 && offsetof(struct nvtx_attributes, message) == 40,
               "the interface's layout");

/* PyTorch's emit_nvtx appends details that differ in every call to an operator's name: no two ranges would have the
 * same name. */
static void drop_details(struct mt_nvtx_name *name, uint16_t from) {
  static const char *const details[] = {", seq = ", ", op_id = ", ", sizes = "};
  for (unsigned i = 0; i < sizeof details / sizeof *details; i++) {
    char *found = memmem(name->text + from, (size_t)(name->size - from), details[i], strlen(details[i]));
    if (found && found > name->text + from) name->size = (uint16_t)(found - name->text);
  }
}

/* "message", or "domain:message"; empty where there is no message. */
static void compose(struct mt_nvtx_name *name, const void *domain, const char *ascii, const wchar_t *wide) {
  enum { DOMAIN_MAX = 127 }; /* leaves room for the message */
  const char *text;
  size_t n = mt_nvtx_text(MT_NVTX_DOMAIN, domain, &text);
  name->size = 0;
  if (n) {
    if (n > DOMAIN_MAX)
      for (n = DOMAIN_MAX; n && (text[n] & 0xc0) == 0x80;) n--;
    memcpy(name->text, text, n);
    name->text[n] = ':';
    name->size = (uint16_t)(n + 1);
  }
  uint16_t start = name->size;
  mt_nvtx_add(name, ascii);
  mt_nvtx_add_wide(name, wide);
  drop_details(name, start);
  if (name->size == start) name->size = 0;
}

static void compose_event(struct mt_nvtx_name *name, const void *domain, const struct nvtx_attributes *event) {
  const char *ascii = NULL;
  char registered[MEMTRACE_NAME_MAX + 1];
  int type = event && event->size >= sizeof *event ? event->message_type : 0;
  if (type == MT_NVTX_ASCII) ascii = event->message.ascii;
  if (type == MT_NVTX_REGISTERED) {
    const char *text;
    size_t n = mt_nvtx_text(MT_NVTX_TEXT, event->message.registered, &text);
    memcpy(registered, text, n);
    registered[n] = 0;
    ascii = registered;
  }
  compose(name, domain, ascii, type == MT_NVTX_UNICODE ? event->message.unicode : NULL);
}

static int push(const void *domain, const struct mt_nvtx_name *name) {
  int error = errno;
  mt_tag_push(mt_nvtx_owner(domain), name->text, name->size);
  errno = error;
  return MT_NVTX_NOT_TRACKED;
}

static int pop(const void *domain) {
  int error = errno;
  mt_tag_pop(mt_nvtx_owner(domain));
  errno = error;
  return MT_NVTX_NOT_TRACKED;
}

static void mark(const struct mt_nvtx_name *name) {
  int error = errno;
  mt_tag_mark(name->text, name->size);
  errno = error;
}

/* Ranges that begin in one thread and may end in another belong to no thread's stack: they become two marks. All of
 * them have the same id, so what an end ends is known only while all open ranges of the domain have the same name. One
 * word for that: 32 bits count the open ranges, 20 are the name of their end (0 for none), 12 the recording in which
 * the name was written. */
#define MT_NVTX_COUNT_BITS 32
#define MT_NVTX_NAME_BITS 20
#define MT_NVTX_COUNT_MAX ((1ull << MT_NVTX_COUNT_BITS) - 1)
#define MT_NVTX_SEVERAL ((1u << MT_NVTX_NAME_BITS) - 1) /* a name's place where the open ranges differ */
_Static_assert(MT_INDEX_MAX < MT_NVTX_SEVERAL, "a dictionary id fits");

/* Domains whose hashes collide share a word: their names differ, so they are never confused. */
static uint64_t *open_ranges(const void *domain) {
  enum { OWN = 3, HASH_BITS = 6 }; /* the default domain's owner and the one of no domain have a word of their own */
  static uint64_t words[OWN + (1 << HASH_BITS)];
  uint32_t owner = mt_nvtx_owner(domain);
  return &words[owner < OWN ? owner : OWN + (owner * 2654435761u >> (32 - HASH_BITS))];
}

static uint64_t recording_now(void) {
  return __atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_RELAXED) << (MT_NVTX_COUNT_BITS + MT_NVTX_NAME_BITS);
}
static uint64_t count_of(uint64_t word) { return word & MT_NVTX_COUNT_MAX; }
static uint32_t end_name_of(uint64_t word) { return word >> MT_NVTX_COUNT_BITS & ((1u << MT_NVTX_NAME_BITS) - 1); }
static uint64_t recording_of(uint64_t word) {
  return word >> (MT_NVTX_COUNT_BITS + MT_NVTX_NAME_BITS) << (MT_NVTX_COUNT_BITS + MT_NVTX_NAME_BITS);
}

static void open_range(uint64_t *word, uint32_t end_name) {
  uint64_t recording = recording_now(), now = __atomic_load_n(word, __ATOMIC_RELAXED), next;
  do {
    uint64_t count = count_of(now);
    uint32_t name =
        !count || (end_name_of(now) == end_name && recording_of(now) == recording) ? end_name : MT_NVTX_SEVERAL;
    next = recording | (uint64_t)name << MT_NVTX_COUNT_BITS | (count < MT_NVTX_COUNT_MAX ? count + 1 : count);
  } while (!__atomic_compare_exchange_n(word, &now, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

/* Returns the word as it was before the range was taken out of it; its count is 0 if no range was open. */
static uint64_t close_range(uint64_t *word) {
  uint64_t now = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (count_of(now) && !__atomic_compare_exchange_n(word, &now, now - 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
  return now;
}

static void append(struct mt_nvtx_name *name, const char *end) {
  size_t n = strlen(end), most = sizeof name->text - n;
  if (name->size > most)
    for (name->size = (uint16_t)most; name->size && (name->text[name->size] & 0xc0) == 0x80;) name->size--;
  mt_nvtx_add(name, end);
}

static uint64_t start(const void *domain, struct mt_nvtx_name *name) {
  int error = errno;
  uint32_t end_name = 0;
  if (name->size) {
    struct mt_nvtx_name end = *name;
    append(name, " begin");
    append(&end, " end");
    if (mt_tag_mark(name->text, name->size)) end_name = mt_tag_text(end.text, end.size);
  }
  open_range(open_ranges(domain), end_name);
  errno = error;
  return MT_NVTX_NO_RANGE;
}

static void end(const void *domain, uint64_t range) {
  if (range != MT_NVTX_NO_RANGE) return; /* not from this library */
  int error = errno;
  uint64_t open = close_range(open_ranges(domain));
  uint32_t name = end_name_of(open);
  if (count_of(open) && name && recording_of(open) == recording_now()) {
    struct mt_nvtx_name any;
    if (name != MT_NVTX_SEVERAL) {
      mt_tag_mark_id(name);
    } else {
      compose(&any, domain, "range end", NULL);
      mt_tag_mark(any.text, any.size);
    }
  }
  errno = error;
}

#define MT_NVTX_NAMED(domain, ascii, wide) \
  struct mt_nvtx_name name;                \
  compose(&name, domain, ascii, wide)
#define MT_NVTX_EVENT(domain, event) \
  struct mt_nvtx_name name;          \
  compose_event(&name, domain, event)

static void mark_event(const struct nvtx_attributes *e) { MT_NVTX_EVENT(NULL, e); mark(&name); }
static void mark_ascii(const char *text) { MT_NVTX_NAMED(NULL, text, NULL); mark(&name); }
static void mark_wide(const wchar_t *text) { MT_NVTX_NAMED(NULL, NULL, text); mark(&name); }
static uint64_t start_event(const struct nvtx_attributes *e) { MT_NVTX_EVENT(NULL, e); return start(NULL, &name); }
static uint64_t start_ascii(const char *text) { MT_NVTX_NAMED(NULL, text, NULL); return start(NULL, &name); }
static uint64_t start_wide(const wchar_t *text) { MT_NVTX_NAMED(NULL, NULL, text); return start(NULL, &name); }
static void end_default(uint64_t range) { end(NULL, range); }
static int push_event(const struct nvtx_attributes *e) { MT_NVTX_EVENT(NULL, e); return push(NULL, &name); }
static int push_ascii(const char *text) { MT_NVTX_NAMED(NULL, text, NULL); return push(NULL, &name); }
static int push_wide(const wchar_t *text) { MT_NVTX_NAMED(NULL, NULL, text); return push(NULL, &name); }
static int pop_default(void) { return pop(NULL); }

static void domain_mark(const void *domain, const struct nvtx_attributes *e) { MT_NVTX_EVENT(domain, e); mark(&name); }
static uint64_t domain_start(const void *domain, const struct nvtx_attributes *e) {
  MT_NVTX_EVENT(domain, e);
  return start(domain, &name);
}
static void domain_end(const void *domain, uint64_t range) { end(domain, range); }
static int domain_push(const void *domain, const struct nvtx_attributes *e) {
  MT_NVTX_EVENT(domain, e);
  return push(domain, &name);
}
static int domain_pop(const void *domain) { return pop(domain); }

static const void *keep(enum mt_nvtx_kind kind, const char *ascii, const wchar_t *wide) {
  int error = errno;
  MT_NVTX_NAMED(NULL, ascii, wide);
  const void *handle = mt_nvtx_intern(kind, &name);
  errno = error;
  return handle;
}
static const void *register_ascii(const void *domain, const char *text) {
  (void)domain;
  return keep(MT_NVTX_TEXT, text, NULL);
}
static const void *register_wide(const void *domain, const wchar_t *text) {
  (void)domain;
  return keep(MT_NVTX_TEXT, NULL, text);
}
static const void *domain_ascii(const char *text) { return keep(MT_NVTX_DOMAIN, text, NULL); }
static const void *domain_wide(const wchar_t *text) { return keep(MT_NVTX_DOMAIN, NULL, text); }

struct row {
  unsigned id;
  nvtx_function function;
};
#define MT_NVTX_ROW(id, function) {id, (nvtx_function)(void *)function}

static const struct row core[] = {
    MT_NVTX_ROW(1, mark_event),  MT_NVTX_ROW(2, mark_ascii), MT_NVTX_ROW(3, mark_wide),   MT_NVTX_ROW(4, start_event),
    MT_NVTX_ROW(5, start_ascii), MT_NVTX_ROW(6, start_wide), MT_NVTX_ROW(7, end_default), MT_NVTX_ROW(8, push_event),
    MT_NVTX_ROW(9, push_ascii),  MT_NVTX_ROW(10, push_wide), MT_NVTX_ROW(11, pop_default),
};

static const struct row core2[] = {
    MT_NVTX_ROW(1, domain_mark),    MT_NVTX_ROW(2, domain_start),  MT_NVTX_ROW(3, domain_end),
    MT_NVTX_ROW(4, domain_push),    MT_NVTX_ROW(5, domain_pop),    MT_NVTX_ROW(10, register_ascii),
    MT_NVTX_ROW(11, register_wide), MT_NVTX_ROW(12, domain_ascii), MT_NVTX_ROW(13, domain_wide),
};

/* Older copies of NVTX have shorter tables, or none for a module. */
static bool fill(const struct nvtx_callbacks *callbacks, uint32_t module, const struct row *rows, unsigned n) {
  nvtx_function **table = NULL;
  unsigned count = 0;
  if (!callbacks->table_of(module, &table, &count) || !table) return false;
  for (unsigned i = 0; i < n; i++)
    if (rows[i].id < count && table[rows[i].id]) *table[rows[i].id] = rows[i].function;
  return true;
}

MT_EXPORT int InitializeInjectionNvtx2(const void *(*table)(uint32_t id));
MT_EXPORT int InitializeInjectionNvtx2(const void *(*table)(uint32_t id)) {
  if (!table || !mt_nvtx_wanted()) return 0;
  const struct nvtx_callbacks *callbacks = table(MT_NVTX_TABLE_CALLBACKS);
  if (!callbacks || callbacks->size < sizeof *callbacks || !callbacks->table_of) return 0;
  if (!fill(callbacks, MT_NVTX_CORE, core, sizeof core / sizeof *core)) return 0;
  fill(callbacks, MT_NVTX_CORE2, core2, sizeof core2 / sizeof *core2);
  const struct nvtx_version *version = table(MT_NVTX_TABLE_VERSION);
  if (version && version->size >= sizeof *version && version->set) version->set(MT_NVTX_VERSION);
  return 1;
}
