#define _GNU_SOURCE
#include "unwind/stackmemo.h"

#define MT_STACK_MEMO_ALL 16384u
#define MT_STACK_MEMO_PROBES 8u
#define MT_STACK_MEMO_ARENA (16ull << 20)

struct mt_memo_storage {
  struct mt_stack_memo_pair pairs[1u << MT_STACK_MEMO_BITS];
  struct mt_stack_memo *all[MT_STACK_MEMO_ALL]; /* each once */
  uint64_t used;                            /* bytes of the arena; at its size for good once a memo found no room */
  _Alignas(64) char arena[MT_STACK_MEMO_ARENA];
};

int mt_memo_table_start(struct mt_memo_table *memory) {
  memory->storage = mt_table_start(&memory->table, sizeof *memory->storage);
  memory->pairs = memory->storage ? memory->storage->pairs : NULL;
  return memory->storage ? 0 : -1;
}

void mt_memo_table_predict(struct mt_memo_table *memory, uint64_t key, struct mt_stack_memo *memo) {
  struct mt_stack_memo_pair *pair = mt_memo_table_pair(memory, key);
  __atomic_store_n(&pair->before, __atomic_load_n(&pair->last, __ATOMIC_RELAXED), __ATOMIC_RELEASE);
  __atomic_store_n(&pair->last, memo, __ATOMIC_RELEASE);
}

struct mt_stack_memo *mt_memo_table_find(struct mt_memo_table *memory, uint64_t hash, uint32_t id, uint32_t generation,
                                         mt_memo_test *holds, const void *now, struct mt_stack_memo ***place) {
  hash = (hash ^ (uint64_t)id << 48) * 0x9E3779B97F4A7C15ull;
  *place = NULL;
  if (!memory->storage) return NULL;
  for (unsigned i = 0, at = (unsigned)(hash >> 40); i < MT_STACK_MEMO_PROBES; i++, at++) {
    struct mt_stack_memo **slot = &memory->storage->all[at % MT_STACK_MEMO_ALL],
                         *memo = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    if (memo && memo->id == id && holds(memo, now)) return memo;
    if (!*place && (!memo || memo->generation != generation)) *place = slot;
    if (!memo) break;
  }
  if (__atomic_load_n(&memory->storage->used, __ATOMIC_RELAXED) >= MT_STACK_MEMO_ARENA) *place = NULL;
  return NULL;
}

void *mt_memo_table_alloc(struct mt_memo_table *memory, size_t size, uint32_t id, uint32_t generation) {
  struct mt_memo_storage *storage = memory->storage;
  size = (size + 63) & ~(size_t)63;
  uint64_t at = __atomic_fetch_add(&storage->used, size, __ATOMIC_RELAXED);
  if (at > MT_STACK_MEMO_ARENA - size) {
    __atomic_store_n(&storage->used, MT_STACK_MEMO_ARENA, __ATOMIC_RELAXED);
    return NULL;
  }
  struct mt_stack_memo *memo = (void *)(storage->arena + at);
  *memo = (struct mt_stack_memo){.id = id, .generation = generation};
  return memo;
}
