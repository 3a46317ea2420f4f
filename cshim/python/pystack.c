#define _GNU_SOURCE
#include "python/pystack.h"

#include <string.h>

#include "base/sys.h"
#include "base/table.h"
#include "base/thread.h"
#include "python/pycode.h"
#include "spool/dict.h"
#include "spool/region.h"

#define MT_PY_LEVELS 4u
#define MT_PY_LEVEL_BITS 12u /* of the first; each next one has four times as many slots */
#define MT_PY_PROBES 8u
#define MT_PY_STORE_MAX (128u << 20)
#define MT_PY_STORE_MIN (4u << 20)

/* Interned stacks by hash: small tables first, so that a program with few stacks touches few cache lines. hash is
 * claimed first and place stored last; an entry with a place of 0 is still being written. */
struct slot {
  uint64_t hash;  /* 0: empty */
  uint64_t place; /* dictionary id << 32 | word in the store, or GONE */
};

#define TOMBSTONE 1ull /* the stack's code is gone: the slot is free for the next one with its hash */

static struct slot *levels[MT_PY_LEVELS];

/* Raw frames of interned stacks, append only: a head word, then the frames. */
static uint64_t *store;
static uint64_t store_words, store_used;

enum {
  TRANSIENT = 1
}; /* flag of a stored stack: one of its code objects may have been replaced by another one at its address */

static uint64_t about(unsigned count, enum mt_stack_end end, unsigned flags) {
  return count | (uint64_t)end << 16 | (uint64_t)flags << 32;
}

static size_t level_slots(unsigned level) { return (size_t)1 << (MT_PY_LEVEL_BITS + 2 * level); }

/* Where the program's memory is limited, most of it is left to the program. */
static size_t store_size(void) {
  static const int limits[] = {RLIMIT_AS, RLIMIT_DATA};
  size_t size = MT_PY_STORE_MAX;
  for (unsigned i = 0; i < sizeof limits / sizeof *limits; i++) {
    struct rlimit limit;
    while (size > MT_PY_STORE_MIN && !mt_sys_getrlimit(limits[i], &limit) && size > limit.rlim_cur / 16) size /= 2;
  }
  return size;
}

void mt_pystack_start(void) {
  static struct mt_table of_levels, of_store;
  size_t slots = 0;
  for (unsigned i = 0; i < MT_PY_LEVELS; i++) slots += level_slots(i);
  store = NULL;
  store_words = 0;
  store_used = 2; /* no stack lies at 0 or 1 */
  levels[0] = mt_table_start(&of_levels, slots * sizeof(struct slot));
  for (unsigned i = 1; i < MT_PY_LEVELS; i++) levels[i] = levels[0] ? levels[i - 1] + level_slots(i - 1) : NULL;
  for (size_t size = store_size(); levels[0] && !store && size >= MT_PY_STORE_MIN; size /= 2)
    if ((store = mt_table_start(&of_store, size))) store_words = size / sizeof *store;
}

/* Four lanes, since a multiplication waits for the one before it. */
static uint64_t hash(const struct mt_pyraw *frames, unsigned count, enum mt_stack_end end) {
  uint64_t a = count, b = end, c = 1, d = 2;
  for (unsigned i = 0; i < count; i++) {
    a = (a ^ frames[i].code) * 0x9E3779B97F4A7C15ull;
    b = (b ^ frames[i].position) * 0xC2B2AE3D27D4EB4Full;
    c = (c ^ frames[i].identity) * 0x165667B19E3779F9ull;
    d = (d ^ frames[i].self) * 0x27D4EB2F165667C5ull;
  }
  uint64_t h = (a ^ a >> 31) + (b ^ b >> 29) * 3 + (c ^ c >> 27) * 5 + (d ^ d >> 33) * 7;
  h = (h ^ h >> 32) * 0x9E3779B97F4A7C15ull;
  h ^= h >> 29;
  return h ? h : 1;
}

/* Whether each code object is still the one that the entry names. */
static bool code_still_matches(uint32_t id, const struct mt_pyraw *frames, unsigned count) {
  const struct mt_pyframe *written = (const void *)(mt_data() + mt_index()[id - 1].offset + sizeof(uint64_t));
  for (unsigned i = 0; i < count; i++)
    if (!mt_pycode_matches(frames[i].code & ~1ull, frames[i].identity, written[i].code)) return false;
  return true;
}

static bool equals(const uint64_t *stored, const struct mt_pyraw *frames, unsigned count, enum mt_stack_end end) {
  return (uint32_t)*stored == (uint32_t)about(count, end, 0) && !memcmp(stored + 1, frames, count * sizeof *frames);
}

/* The id of an equal stack, 0 if there is none; *free is then the slot for it, or NULL. */
static uint32_t find(uint64_t h, const struct mt_pyraw *frames, unsigned count, enum mt_stack_end end,
                     struct slot **free, bool *persistent) {
  *free = NULL;
  for (unsigned level = 0; level < MT_PY_LEVELS && !*free; level++) {
    size_t mask = level_slots(level) - 1, at = h & mask;
    for (unsigned i = 0; i < MT_PY_PROBES; i++, at = (at + 1) & mask) {
      struct slot *slot = &levels[level][at];
      uint64_t have = __atomic_load_n(&slot->hash, __ATOMIC_ACQUIRE);
      if (!have) {
        if (!*free) *free = slot;
        break;
      }
      if (have != h) continue;
      uint64_t place = __atomic_load_n(&slot->place, __ATOMIC_ACQUIRE);
      const uint64_t *stored = store + (uint32_t)place;
      if (place && place != TOMBSTONE && equals(stored, frames, count, end)) {
        *persistent = !(*stored >> 32 & TRANSIENT);
        if (MT_LIKELY(*persistent) || code_still_matches((uint32_t)(place >> 32), frames, count))
          return (uint32_t)(place >> 32);
        if (__atomic_compare_exchange_n(&slot->place, &place, TOMBSTONE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
          place = TOMBSTONE;
      }
      if (place == TOMBSTONE) *free = slot;
    }
  }
  return 0;
}

/* Writes the stack and the code objects that are new; 0 if there is no room. */
__attribute__((noinline)) static uint32_t write_stack(const struct mt_pyraw *frames, unsigned count,
                                                      enum mt_stack_end end, unsigned *flags) {
  struct mt_pyframe written[MT_PYTHON_MAX];
  uint64_t ends = end;
  for (unsigned i = 0; i < count; i++) {
    uint64_t code = frames[i].code & ~1ull, caller = i + 1 < count ? frames[i + 1].code & ~1ull : 0;
    bool transient, module_call;
    uint32_t id = mt_pycode_intern(code, frames[i].identity, caller, &transient, &module_call);
    if (!id) return 0;
    if (transient) *flags |= TRANSIENT;
    uint64_t self = frames[i].self;
    if (module_call && !self) self = mt_python_self(code, i); /* the walk did not know yet */
    written[i] = (struct mt_pyframe){
        .code = id, .where = mt_pycode_offset(code, frames[i].position) << 1 | (frames[i].code & 1), .self = self};
  }
  return mt_dict_append(MT_DICT_PYSTACK, (struct mt_bytes[]){{&ends, sizeof ends}, {written, count * sizeof *written}},
                        2);
}

static void insert(struct slot *slot, uint64_t h, const struct mt_pyraw *frames, unsigned count, uint64_t head,
                   uint32_t id) {
  uint64_t words = 1 + count * (sizeof *frames / sizeof *store), empty = 0, gone = TOMBSTONE;
  uint64_t at = __atomic_fetch_add(&store_used, words, __ATOMIC_RELAXED);
  if (at + words > store_words) return;
  store[at] = head;
  memcpy(store + at + 1, frames, count * sizeof *frames);
  uint64_t place = (uint64_t)id << 32 | at;
  if (__atomic_load_n(&slot->hash, __ATOMIC_RELAXED) == h)
    __atomic_compare_exchange_n(&slot->place, &gone, place, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  else if (__atomic_compare_exchange_n(&slot->hash, &empty, h, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    __atomic_store_n(&slot->place, place, __ATOMIC_RELEASE);
}

/* What cannot be remembered would be written again with every event. */
static bool room(const struct slot *slot, unsigned count) {
  return slot && __atomic_load_n(&store_used, __ATOMIC_RELAXED) + 1 + 4ull * count <= store_words;
}

uint32_t mt_pystack_intern(const struct mt_pyraw *frames, unsigned count, enum mt_stack_end end, bool *persistent) {
  struct slot *slot;
  unsigned flags = 0;
  *persistent = false;
  if (!count || count > MT_PYTHON_MAX || MT_UNLIKELY(!store)) return 0;
  uint64_t h = hash(frames, count, end);
  uint32_t id = find(h, frames, count, end, &slot, persistent);
  if (MT_LIKELY(id)) return id;
  if (!room(slot, count)) return mt_dict_count_lost();
  id = write_stack(frames, count, end, &flags);
  if (id) insert(slot, h, frames, count, about(count, end, flags), id);
  *persistent = !(flags & TRANSIENT);
  return id;
}

uint32_t mt_python_intern(const struct mt_pyraw *frames, unsigned count, enum mt_stack_end end) {
  bool persistent;
  return mt_pystack_intern(frames, count, end, &persistent);
}
