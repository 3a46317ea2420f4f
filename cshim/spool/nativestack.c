#define _GNU_SOURCE
#include "spool/nativestack.h"

#include <errno.h>
#include <string.h>

#include "base/table.h"
#include "base/thread.h"
#include "spool/dict.h"
#include "spool/module.h"
#include "spool/region.h"

/* Open addressing in two tables: a small one, whose pages stay in the cache, holds all stacks of most programs; a large
 * one, touched only by need, the others'. That one has two slots for each entry of the dictionary. */
#define MT_NATIVE_SMALL 4096u
#define MT_NATIVE_LARGE (2 * MT_INDEX_MAX)
#define MT_NATIVE_SMALL_PROBES 16u
#define MT_NATIVE_LARGE_PROBES 64u

/* mark is hash << 32 | id, stored last; 0 is empty and BUSY a slot that another thread fills just now. */
struct slot {
  uint64_t mark;
  uint64_t offset; /* of the dictionary entry's data in the spool */
};
#define BUSY 1ull

static struct slot *table;
static uint64_t generation;

int mt_native_start(void) {
  static struct mt_table memory;
  table = mt_table_start(&memory, sizeof *table * (MT_NATIVE_SMALL + MT_NATIVE_LARGE));
  return table ? 0 : -1;
}

void mt_native_invalidate(void) { __atomic_add_fetch(&generation, 1, __ATOMIC_RELAXED); }

/* Four lanes, since one multiplication has to wait for the one before. */
static uint64_t hash_words(const uint64_t *p, unsigned n) {
  uint64_t a = n + (__atomic_load_n(&generation, __ATOMIC_RELAXED) << 32), b = 1, c = 2, d = 3;
  unsigned i = 0;
  for (; i + 4 <= n; i += 4) {
    a = (a ^ p[i]) * 0x9E3779B97F4A7C15ull;
    b = (b ^ p[i + 1]) * 0xC2B2AE3D27D4EB4Full;
    c = (c ^ p[i + 2]) * 0x165667B19E3779F9ull;
    d = (d ^ p[i + 3]) * 0x27D4EB2F165667C5ull;
  }
  for (; i < n; i++) a = (a ^ p[i]) * 0x9E3779B97F4A7C15ull;
  uint64_t h = (a ^ a >> 32) + (b ^ b >> 29) * 3 + (c ^ c >> 31) * 5 + (d ^ d >> 33) * 7;
  return h * 0x9E3779B97F4A7C15ull;
}

static __attribute__((noinline)) uint32_t insert(struct slot *slot, uint64_t hash, const uint64_t *stack,
                                                 unsigned count) {
  int error = errno;
  for (unsigned i = 0; i < count; i++) mt_module_record(stack[1 + i] - 1);
  uint32_t id = mt_dict_append(MT_DICT_STACK, &(struct mt_bytes){stack, (1 + count) * sizeof *stack}, 1);
  uint64_t empty = 0;
  if (id && __atomic_compare_exchange_n(&slot->mark, &empty, BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    slot->offset = mt_index()[id - 1].offset;
    __atomic_store_n(&slot->mark, (hash & ~0xffffffffull) | id, __ATOMIC_RELEASE);
  }
  errno = error;
  return id;
}

/* The id of the stack in one of the tables, or 0 and where it may be put: NULL if all the places for it are taken. */
static inline uint32_t find(struct slot *slots, uint32_t mask, unsigned probes, uint64_t hash, const uint64_t *stack,
                            size_t bytes, struct slot **place) {
  *place = NULL;
  for (uint32_t i = 0, at = (uint32_t)hash & mask; i < probes; i++, at = (at + 1) & mask) {
    uint64_t mark = __atomic_load_n(&slots[at].mark, __ATOMIC_ACQUIRE);
    if (!mark) {
      *place = &slots[at];
      break;
    }
    if ((mark ^ hash) >> 32) continue;
    uint32_t id = (uint32_t)mark;
    if (mt_index()[id - 1].length == bytes && !memcmp(mt_data() + slots[at].offset, stack, bytes)) return id;
  }
  return 0;
}

uint32_t mt_native_intern(const uint64_t *stack, unsigned count) {
  size_t bytes = (1 + count) * sizeof *stack;
  uint64_t hash = hash_words(stack, 1 + count) | 1ull << 63; /* no stack's mark is BUSY */
  struct slot *place;
  uint32_t id = find(table, MT_NATIVE_SMALL - 1, MT_NATIVE_SMALL_PROBES, hash, stack, bytes, &place);
  if (!id && !place)
    id = find(table + MT_NATIVE_SMALL, MT_NATIVE_LARGE - 1, MT_NATIVE_LARGE_PROBES, hash, stack, bytes, &place);
  if (MT_LIKELY(id)) return id;
  return place ? insert(place, hash, stack, count)
               : mt_dict_count_lost(); /* what cannot be remembered would be written again with every event */
}
