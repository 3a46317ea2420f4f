#define _GNU_SOURCE
#include "unwind/stackmemo.h"

#define MT_STACK_MEMO_ALL 16384u
#define MT_STACK_MEMO_PROBES 8u
#define MT_STACK_MEMO_ARENA (16ull << 20)

struct mt_memory_rooms {
  struct mt_stack_memo_pair pairs[1u << MT_STACK_MEMO_BITS];
  struct mt_stack_memo *all[MT_STACK_MEMO_ALL]; /* each once */
  uint64_t used;                            /* bytes of the arena; at its size for good once a memo found no room */
  _Alignas(64) char arena[MT_STACK_MEMO_ARENA];
};

int mt_memory_start(struct mt_memory *memory) {
  memory->rooms = mt_table_start(&memory->table, sizeof *memory->rooms);
  memory->pairs = memory->rooms ? memory->rooms->pairs : NULL;
  return memory->rooms ? 0 : -1;
}

void mt_memory_expect(struct mt_memory *memory, uint64_t key, struct mt_stack_memo *memo) {
  struct mt_stack_memo_pair *pair = mt_memory_pair(memory, key);
  __atomic_store_n(&pair->before, __atomic_load_n(&pair->last, __ATOMIC_RELAXED), __ATOMIC_RELEASE);
  __atomic_store_n(&pair->last, memo, __ATOMIC_RELEASE);
}

struct mt_stack_memo *mt_memory_find(struct mt_memory *memory, uint64_t hash, uint32_t id, uint32_t generation,
                                     mt_memo_test *holds, const void *now, struct mt_stack_memo ***place) {
  hash = (hash ^ (uint64_t)id << 48) * 0x9E3779B97F4A7C15ull;
  *place = NULL;
  if (!memory->rooms) return NULL;
  for (unsigned i = 0, at = (unsigned)(hash >> 40); i < MT_STACK_MEMO_PROBES; i++, at++) {
    struct mt_stack_memo **slot = &memory->rooms->all[at % MT_STACK_MEMO_ALL],
                         *memo = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    if (memo && memo->id == id && holds(memo, now)) return memo;
    if (!*place && (!memo || memo->generation != generation)) *place = slot;
    if (!memo) break;
  }
  if (__atomic_load_n(&memory->rooms->used, __ATOMIC_RELAXED) >= MT_STACK_MEMO_ARENA) *place = NULL;
  return NULL;
}

void *mt_memory_room(struct mt_memory *memory, size_t size, uint32_t id, uint32_t generation) {
  struct mt_memory_rooms *rooms = memory->rooms;
  size = (size + 63) & ~(size_t)63;
  uint64_t at = __atomic_fetch_add(&rooms->used, size, __ATOMIC_RELAXED);
  if (at > MT_STACK_MEMO_ARENA - size) {
    __atomic_store_n(&rooms->used, MT_STACK_MEMO_ARENA, __ATOMIC_RELAXED);
    return NULL;
  }
  struct mt_stack_memo *memo = (void *)(rooms->arena + at);
  *memo = (struct mt_stack_memo){.id = id, .generation = generation};
  return memo;
}
