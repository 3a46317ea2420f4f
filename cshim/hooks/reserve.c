#define _GNU_SOURCE
#include "hooks/reserve.h"

#include <stdbool.h>
#include <string.h>

#include "hooks/context.h"
#include "hooks/graph.h"
#include "hooks/hooks.h"
#include "hooks/query.h"

#define MT_POOLS 64u
#define MT_POOL_DEVICES 64

enum { CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5, CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7 };  /* CUmemPool_attribute */
enum { CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT = 0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT = 2 }; /* CUgraphMem_attribute */

/* A pool's counts at the last query, and how much was allocated from it since. used + since is an upper bound of what
 * is in use: as long as it is below held, the pool has not grown and need not be queried. */
struct state {
  uint64_t pool; /* handle; 0 unused */
  uint64_t held, used, since;
  int32_t device;
};
static struct state current[MT_POOL_DEVICES]; /* where cuMemAllocAsync takes from, by device */
static struct state
    named[MT_POOLS]; /* pools named by the program, by handle; two that share an entry are queried more often */
static uint64_t graphs[MT_POOL_DEVICES];      /* bytes held for graphs, by device */
static uint32_t async_seen;

void mt_reserve_start(void) {
  memset(current, 0, sizeof current);
  memset(named, 0, sizeof named);
  memset(graphs, 0, sizeof graphs);
  async_seen = 0;
}

static struct state *named_pool(uint64_t pool) { return &named[(pool >> 4) * 0x9E3779B97F4A7C15ull >> 58]; }
_Static_assert(MT_POOLS == 1 << (64 - 58), "the hash has as many values as there are entries");

static void record(struct mt_thread *self, uint16_t api, uintptr_t caller, uint8_t object, uint64_t pool, int device,
                   uint64_t held, uint64_t used) {
  mt_call_record_extra(self, api, caller,
                 &(struct mt_outcome){
                     .kind = MT_RESERVE, .mem = object, .addr = pool, .size = held, .used = used, .device = device});
}

static bool query_pool(uint64_t pool, uint64_t *held, uint64_t *used) {
  int (*query)(uint64_t, int, uint64_t *) = mt_query_find(MT_QUERY_POOL_VALUE);
  return query && !query(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, held) &&
         !query(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, used);
}

/* Stores the pool's counts; true if held has changed. */
static bool update(struct state *s, uint64_t held, uint64_t used) {
  __atomic_store_n(&s->used, used, __ATOMIC_RELAXED);
  __atomic_store_n(&s->since, 0, __ATOMIC_RELAXED);
  return __atomic_exchange_n(&s->held, held, __ATOMIC_RELAXED) != held;
}

static void refresh_pool(struct mt_thread *self, uint16_t api, uintptr_t caller, struct state *s, uint64_t pool,
                         int device) {
  uint64_t held, used;
  if (!query_pool(pool, &held, &used)) return;
  bool changed = __atomic_exchange_n(&s->pool, pool, __ATOMIC_RELAXED) != pool;
  changed |= update(s, held, used);
  __atomic_store_n(&s->device, device, __ATOMIC_RELAXED);
  if (changed) record(self, api, caller, MT_OBJECT_POOL, pool, device, held, used);
}

static uint64_t current_pool(int device) {
  int (*query)(uint64_t *, int) = mt_query_find(MT_QUERY_POOL);
  uint64_t pool;
  return query && !query(&pool, device) ? pool : 0;
}

void mt_reserve_grown(struct mt_thread *self, uint16_t api, uintptr_t caller, int device, uint64_t pool,
                      uint64_t size) {
  if (device < 0 || device >= MT_POOL_DEVICES) return;
  __atomic_store_n(&async_seen, 1, __ATOMIC_RELAXED);
  struct state *s = pool ? named_pool(pool) : &current[device];
  uint64_t since = __atomic_add_fetch(&s->since, size, __ATOMIC_RELAXED);
  bool same = !pool || __atomic_load_n(&s->pool, __ATOMIC_RELAXED) == pool;
  if (MT_LIKELY(same &&
                __atomic_load_n(&s->used, __ATOMIC_RELAXED) + since <= __atomic_load_n(&s->held, __ATOMIC_RELAXED)))
    return;
  if (!pool && !(pool = current_pool(device))) return;
  refresh_pool(self, api, caller, s, pool, device);
}

int mt_reserve_device(uint64_t pool, int otherwise) {
  const struct state *s = named_pool(pool);
  return __atomic_load_n(&s->pool, __ATOMIC_RELAXED) == pool ? __atomic_load_n(&s->device, __ATOMIC_RELAXED)
                                                             : otherwise;
}

static void refresh_graphs(struct mt_thread *self, uint16_t api, uintptr_t caller, int device) {
  int (*query)(int, int, uint64_t *) = mt_query_find(MT_QUERY_GRAPH_VALUE);
  uint64_t held, used;
  if (device < 0 || device >= MT_POOL_DEVICES || !query ||
      query(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &held) ||
      query(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used))
    return;
  if (__atomic_exchange_n(&graphs[device], held, __ATOMIC_RELAXED) != held)
    record(self, api, caller, MT_OBJECT_GRAPH_POOL, 0, device, held, used);
}

void mt_reserve_graph(struct mt_thread *self, uint16_t api, uintptr_t caller) {
  int device;
  if (!mt_query_current_device(&device)) refresh_graphs(self, api, caller, device);
}

static void refresh_device(int device, void *thread) {
  struct mt_thread *self = thread;
  if (__atomic_load_n(&async_seen, __ATOMIC_RELAXED) && device < MT_POOL_DEVICES) {
    uint64_t pool = current_pool(device);
    int (*fallback)(uint64_t *, int) = mt_query_find(MT_QUERY_POOL_DEFAULT);
    uint64_t own;
    /* A pool that the program created may be destroyed during the query; the device's default pool never is. */
    if (fallback && !fallback(&own, device) && own == pool) refresh_pool(self, 0, 0, &current[device], pool, device);
  }
  if (mt_graph_has_memory()) refresh_graphs(self, 0, 0, device);
}

void mt_reserve_refresh_all(void) {
  struct mt_thread *self = mt_thread_get();
  if (self) mt_context_devices(refresh_device, self);
}

static void update_trimmed(struct state *s, uint64_t pool, uint64_t held, uint64_t used, int *device) {
  if (__atomic_load_n(&s->pool, __ATOMIC_RELAXED) != pool) return;
  *device = __atomic_load_n(&s->device, __ATOMIC_RELAXED);
  update(s, held, used);
}

MT_HOOKED(cuMemPoolTrimTo, (uint64_t pool, size_t keep)) {
  MT_HOOKED_REAL(cuMemPoolTrimTo);
  MT_HOOKED_OPEN(cuMemPoolTrimTo, driver, 0);
  int status = real(pool, keep);
  uint64_t held, used;
  if (!call.self) return status;
  if (status || !query_pool(pool, &held, &used)) return mt_driver_skip(&call), status;
  int device = MT_HOST;
  for (int i = 0; i < MT_POOL_DEVICES; i++) update_trimmed(&current[i], pool, held, used, &device);
  update_trimmed(named_pool(pool), pool, held, used, &device);
  mt_driver_close(
      &call,
      &(struct mt_outcome){
          .kind = MT_RESERVE, .mem = MT_OBJECT_POOL, .addr = pool, .size = held, .used = used, .device = device});
  return status;
}

MT_HOOKED(cuDeviceGraphMemTrim, (int device)) {
  MT_HOOKED_REAL(cuDeviceGraphMemTrim);
  MT_HOOKED_OPEN(cuDeviceGraphMemTrim, driver, 0);
  int status = real(device);
  if (!call.self) return status;
  if (!status) refresh_graphs(call.self, call.id, call.caller, device);
  mt_driver_skip(&call);
  return status;
}
