#define _GNU_SOURCE
#include "allocator/calls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "allocator/vtable.h"
#include "allocator/bind.h"
#include "allocator/place.h"
#include "allocator/event.h"
#include "elf/symbol.h"
#include "spool/dict.h"

enum { BEGUN = 1, ENDED = 2 };

#define FRACTION "per_process_memory_fraction"

/* Private pools. While one is begun, the allocator calls a filter, with the allocation's stream, to decide whether a
 * block comes out of it: for the stream of a graph that is captured, for a thread, for all. That filter is replaced
 * where the allocator receives it (beginAllocateToPool, c10/cuda/CUDACachingAllocator.cpp), and the original's result
 * reveals the block's pool. It is a std::function, in libstdc++ two words of its own, a function that moves them, one
 * that calls. */
struct filter {
  void *words[2];
  void *move;
  bool (*call)(const void *words, void **stream);
};

#define POOLS 8u /* that may be begun at one time; further ones stay unknown */
static struct pool {
  uint32_t used;
  int device;
  uint64_t id;
  bool (*call)(const void *words, void **stream);
} pools[POOLS];

static bool filter_matches(const struct pool *pool, const void *words, void **stream) {
  bool here = pool->call(words, stream);
  if (here) mt_place.pool = pool->id;
  return here;
}

#define FILTERS(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)
#define FILTER(n) \
  static bool filter_##n(const void *words, void **stream) { return filter_matches(&pools[n], words, stream); }
FILTERS(FILTER)
#define FILTER_NAME(n) filter_##n,
static bool (*const filters[POOLS])(const void *, void **) = {FILTERS(FILTER_NAME)};

static struct pool *find_pool(int device, uint64_t id) {
  for (unsigned i = 0; i < POOLS; i++)
    if (__atomic_load_n(&pools[i].used, __ATOMIC_ACQUIRE) && pools[i].device == device && pools[i].id == id)
      return &pools[i];
  return NULL;
}

/* A pool that is begun twice is refused by the allocator. */
static void follow_pool(int device, uint64_t id, struct filter *filter) {
  if (!filter->call || find_pool(device, id)) return;
  for (unsigned i = 0; i < POOLS; i++) {
    uint32_t free = 0;
    if (!__atomic_compare_exchange_n(&pools[i].used, &free, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
    pools[i].device = device, pools[i].id = id, pools[i].call = filter->call;
    filter->call = filters[i];
    return;
  }
}

static void begin_pool(void *allocator, int8_t device, uint64_t first, uint64_t second, struct filter *filter) {
  void (*real)(void *, int8_t, uint64_t, uint64_t, struct filter *) = mt_allocator_calls[MT_CALL_BEGIN].real;
  uint64_t id = mt_place_pool(first, second);
  mt_place_begin();
  follow_pool(device, id, filter);
  real(allocator, device, first, second, filter);
  mt_allocator_record(&(struct mt_allocator_event){.kind = MT_POOL, .device = device, .size = BEGUN, .handle = id});
}

static void end_pool(void *allocator, int8_t device, uint64_t first, uint64_t second) {
  void (*real)(void *, int8_t, uint64_t, uint64_t) = mt_allocator_calls[MT_CALL_END].real;
  uint64_t id = mt_place_pool(first, second);
  real(allocator, device, first, second);
  struct pool *pool = find_pool(device, id);
  if (pool) __atomic_store_n(&pool->used, 0, __ATOMIC_RELEASE);
  mt_allocator_record(&(struct mt_allocator_event){.kind = MT_POOL, .device = device, .size = ENDED, .handle = id});
}

/* emptyCache() of older versions has no pool argument: the registers are passed on and not recorded. */
static void empty_cache(void *allocator, uint64_t first, uint64_t second) {
  void (*real)(void *, uint64_t, uint64_t) = mt_allocator_calls[MT_CALL_EMPTY].real;
  const struct mt_frame *frame = __builtin_frame_address(0);
  mt_allocator_record(&(struct mt_allocator_event){.kind = MT_EMPTY, .device = -1, .size = BEGUN, .frame = frame});
  real(allocator, first, second);
  mt_allocator_record(&(struct mt_allocator_event){.kind = MT_EMPTY, .device = -1, .size = ENDED});
}

static void *raw_alloc(void *allocator, size_t bytes, void *stream) {
  void *(*real)(void *, size_t, void *) = mt_allocator_calls[MT_CALL_RAW].real;
  if (stream) mt_place_begin();
  mt_place.stream = 1 + (uint64_t)stream;
  void *block = real(allocator, bytes, stream);
  mt_place.stream = 0;
  return block;
}

/* Settings that come before anything is recorded: programs make them first. */
#define KEPT 4u
#define KEPT_BYTES 512u
static struct {
  uint32_t count;
  struct {
    size_t size;
    char text[KEPT_BYTES];
  } kept[KEPT];
} before;

static bool record_setting(const char *text, size_t size, int device, uint64_t value) {
  struct mt_thread *self = mt_self;
  if (!self || !mt_thread_recording(self)) return false;
  return mt_allocator_record(&(struct mt_allocator_event){
      .kind = MT_SETTING, .device = device, .size = value, .name = mt_dict_intern_limited(MT_DICT_STRING, text, size)});
}

static void keep_early(const char *text, size_t size) {
  uint32_t n = __atomic_fetch_add(&before.count, 1, __ATOMIC_ACQ_REL);
  if (n >= KEPT) return;
  before.kept[n].size = size < KEPT_BYTES ? size : KEPT_BYTES;
  memcpy(before.kept[n].text, text, before.kept[n].size);
}

static void set(const char *text, size_t size) {
  if (size && !record_setting(text, size, -1, 0)) keep_early(text, size);
}

static void set_fraction(void *allocator, double fraction, int8_t device) {
  void (*real)(void *, double, int8_t) = mt_allocator_calls[MT_CALL_SET_FRACTION].real;
  uint64_t bits;
  memcpy(&bits, &fraction, sizeof bits);
  real(allocator, fraction, device);
  record_setting(FRACTION, sizeof FRACTION - 1, device, bits);
}

static void record_fractions(void) {
  struct mt_loaded library = mt_symbol_object("libc10_cuda.so");
  double (*fraction_of)(void *, int8_t) = mt_allocator_calls[MT_CALL_FRACTION].real;
  void **allocator = (void **)mt_symbol_find(&library, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
  int8_t (*count)(void) = (int8_t(*)(void))mt_symbol_find(&library, "_ZN3c104cuda12device_countEv");
  if (!fraction_of || !allocator || !count) return;
  for (int8_t device = 0, devices = count(); device < devices; device++) {
    double fraction = fraction_of(*allocator, device);
    uint64_t bits;
    memcpy(&bits, &fraction, sizeof bits);
    if (fraction < 1) record_setting(FRACTION, sizeof FRACTION - 1, device, bits);
  }
}

void mt_allocator_record_settings(void) {
  uint32_t count = __atomic_load_n(&before.count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count && i < KEPT; i++) record_setting(before.kept[i].text, before.kept[i].size, -1, 0);
  record_fractions();
}

struct mt_allocator_call mt_allocator_calls[MT_CALLS] = {
    [MT_CALL_BEGIN] = {NULL, begin_pool},  [MT_CALL_END] = {NULL, end_pool},
    [MT_CALL_EMPTY] = {NULL, empty_cache}, [MT_CALL_SET_FRACTION] = {NULL, set_fraction},
    [MT_CALL_FRACTION] = {NULL, NULL},     [MT_CALL_RAW] = {NULL, raw_alloc},
};

#define MT_HOOK(...)
#define MT_CUSTOM(...)
#define MT_REPORT(number, symbol, mangled, shape) MT_REPORT_##shape(number, mangled)
#define MT_REPORT_OWN(number, mangled)
#define MT_REPORT_USAGE(number, mangled)
#define MT_REPORT_OOM(number, mangled)
#define MT_REPORT_ROUND(number, mangled)
#define MT_REPORT_DENSE(number, mangled)
#define MT_REPORT_STRIDED(number, mangled)

/* A stream's number is 0 for the default one of each device. */
#define MT_REPORT_STREAM(number, mangled)                             \
  static struct mt_slot slot_##number;                                \
  MT_EXPORT void mangled(uint64_t device, uint64_t stream);           \
  MT_EXPORT void mangled(uint64_t device, uint64_t stream) {          \
    MT_ORIGINAL(number, mangled);                                     \
    if (stream && MT_UNLIKELY(!mt_place_tracking)) {                  \
      mt_allocator_attach();                                          \
      mt_place_begin();                                               \
    }                                                                 \
    ((void (*)(uint64_t, uint64_t))real)(device, stream);             \
  }

#define MT_REPORT_POOL(number, mangled)                                                       \
  static struct mt_slot slot_##number;                                                        \
  MT_EXPORT void mangled(void *pool, void *a, uint64_t b, uint64_t c, uint64_t d);            \
  MT_EXPORT void mangled(void *pool, void *a, uint64_t b, uint64_t c, uint64_t d) {           \
    MT_ORIGINAL(number, mangled);                                                             \
    ((void (*)(void *, void *, uint64_t, uint64_t, uint64_t))real)(pool, a, b, c, d);         \
    mt_allocator_attach();                                                                    \
  }

/* A refused setting throws, and is not recorded. */
#define MT_REPORT_TEXT(number, mangled)                         \
  static struct mt_slot slot_##number;                          \
  MT_EXPORT void mangled(void *config, const char *text);       \
  MT_EXPORT void mangled(void *config, const char *text) {      \
    MT_ORIGINAL(number, mangled);                               \
    ((void (*)(void *, const char *))real)(config, text);       \
    if (text) set(text, strlen(text));                          \
  }

/* std::string begins with its bytes' address and their number. */
struct string {
  const char *bytes;
  size_t size;
};
#define MT_REPORT_STRING(number, mangled)                              \
  static struct mt_slot slot_##number;                                 \
  MT_EXPORT void mangled(void *config, const struct string *text);     \
  MT_EXPORT void mangled(void *config, const struct string *text) {    \
    MT_ORIGINAL(number, mangled);                                      \
    ((void (*)(void *, const struct string *))real)(config, text);     \
    set(text->bytes, text->size);                                      \
  }

#include "hooks.def"
