#define _GNU_SOURCE
#include "spool/dict.h"

#include <string.h>

#include "base/table.h"
#include "spool/region.h"

/* Open addressing over 64-bit words: upper 32 bits of the hash, then the id. Words are only ever set once, so readers
 * need no lock; two threads that intern the same value at once may append it twice, which costs a few bytes and nothing
 * else. */
#define MT_INTERN_BITS 18u
#define MT_INTERN_PROBES 64u

static uint64_t *table;

int mt_dict_start(void) {
  static struct mt_table memory;
  table = mt_table_start(&memory, sizeof *table << MT_INTERN_BITS);
  return table ? 0 : -1;
}

uint32_t mt_dict_count_lost(void) {
  __atomic_add_fetch(&mt_header()->lost_dict, 1, __ATOMIC_RELAXED);
  return 0;
}

static bool reserve_data(uint64_t size, uint64_t *offset) {
  struct mt_spool_header *h = mt_header();
  uint64_t used = __atomic_load_n(&h->data_used, __ATOMIC_RELAXED), end;
  do {
    end = used + size;
    if (end > h->data_max || !mt_region_ensure(&mt_region.data_ready, h->data_offset, end, h->data_max)) return false;
  } while (!__atomic_compare_exchange_n(&h->data_used, &used, end, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  *offset = used;
  return true;
}

static uint32_t reserve_index(void) {
  struct mt_spool_header *h = mt_header();
  uint32_t used = __atomic_load_n(&h->index_used, __ATOMIC_RELAXED);
  do {
    uint64_t end = (uint64_t)(used + 1) * sizeof(struct mt_index_entry);
    if (used >= h->index_max ||
        !mt_region_ensure(&mt_region.index_ready, h->index_offset, end, h->data_offset - h->index_offset))
      return 0;
  } while (!__atomic_compare_exchange_n(&h->index_used, &used, used + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  return used + 1;
}

uint32_t mt_dict_append(enum mt_dict_kind kind, const struct mt_bytes *parts, unsigned count) {
  uint64_t size = 0, offset;
  for (unsigned i = 0; i < count; i++) size += parts[i].size;
  if (size > UINT32_MAX || !reserve_data((size + 7) & ~7ull, &offset)) return mt_dict_count_lost();
  uint32_t id = reserve_index();
  if (!id) return mt_dict_count_lost();
  char *at = mt_data() + offset;
  for (unsigned i = 0; i < count; i++) {
    memcpy(at, parts[i].data, parts[i].size);
    at += parts[i].size;
  }
  struct mt_index_entry *entry = &mt_index()[id - 1];
  entry->length = (uint32_t)size;
  entry->offset = offset;
  __atomic_store_n(&entry->kind, kind, __ATOMIC_RELEASE);
  return id;
}

static uint64_t hash_bytes(uint64_t seed, const unsigned char *p, size_t n) {
  uint64_t h = seed * 0x9E3779B97F4A7C15ull + n;
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    h = (h ^ word) * 0xC2B2AE3D27D4EB4Full;
    h ^= h >> 29;
  }
  for (; n; p++, n--) h = (h ^ *p) * 0x165667B19E3779F9ull;
  h ^= h >> 32;
  return h * 0x9E3779B97F4A7C15ull;
}

static bool equals(uint32_t id, enum mt_dict_kind kind, const void *data, size_t size) {
  const struct mt_index_entry *entry = &mt_index()[id - 1];
  return __atomic_load_n(&entry->kind, __ATOMIC_ACQUIRE) == kind && entry->length == size &&
         !memcmp(mt_data() + entry->offset, data, size);
}

static uint32_t intern(enum mt_dict_kind kind, const void *data, size_t size, bool may_append) {
  uint64_t hash = hash_bytes(kind, data, size), mark = hash & ~0xffffffffull;
  uint32_t mask = (1u << MT_INTERN_BITS) - 1, slot = (uint32_t)hash & mask;
  for (unsigned i = 0; i < MT_INTERN_PROBES; i++, slot = (slot + 1) & mask) {
    uint64_t word = __atomic_load_n(&table[slot], __ATOMIC_ACQUIRE);
    if (word) {
      if ((word & ~0xffffffffull) == mark && equals((uint32_t)word, kind, data, size)) return (uint32_t)word;
      continue;
    }
    if (!may_append) break;
    uint32_t id = mt_dict_append(kind, &(struct mt_bytes){data, size}, 1);
    bool first =
        !id || __atomic_compare_exchange_n(&table[slot], &word, mark | id, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return !first && (word & ~0xffffffffull) == mark && equals((uint32_t)word, kind, data, size)
               ? (uint32_t)word
               : id; /* another thread wrote it at the same moment */
  }
  return mt_dict_count_lost();
}

uint32_t mt_dict_intern(enum mt_dict_kind kind, const void *data, size_t size) {
  return intern(kind, data, size, true);
}

static bool half_free(void) {
  const struct mt_spool_header *h = mt_header();
  return __atomic_load_n(&h->index_used, __ATOMIC_RELAXED) < h->index_max / 2 &&
         __atomic_load_n(&h->data_used, __ATOMIC_RELAXED) < h->data_max / 2;
}

uint32_t mt_dict_intern_limited(enum mt_dict_kind kind, const void *data, size_t size) {
  return intern(kind, data, size, half_free());
}

static unsigned shorter_depth(const struct mt_spool_header *h, unsigned wanted) {
  static const unsigned char depths[16] = {[8] = 32, 32, 16, 16, 8, 4, 2, 1}; /* by sixteenths in use; 0: all */
  uint64_t index = __atomic_load_n(&h->index_used, __ATOMIC_RELAXED) * 16ull / h->index_max,
           data = __atomic_load_n(&h->data_used, __ATOMIC_RELAXED) * 16 / h->data_max;
  uint64_t part = index > data ? index : data;
  unsigned most = part > 15 ? 1 : depths[part];
  return most && most < wanted ? most : wanted;
}

/* Called with each stack, so that the usual case divides nothing. */
unsigned mt_dict_depth(unsigned wanted) {
  const struct mt_spool_header *h = mt_header();
  bool half = __atomic_load_n(&h->index_used, __ATOMIC_RELAXED) >= h->index_max / 2 ||
              __atomic_load_n(&h->data_used, __ATOMIC_RELAXED) >= h->data_max / 2;
  return half ? shorter_depth(h, wanted) : wanted;
}

void mt_dict_info(const char *key, const void *value, size_t size) {
  mt_dict_append(MT_DICT_INFO, (struct mt_bytes[]){{key, strlen(key) + 1}, {value, size}}, 2);
}
