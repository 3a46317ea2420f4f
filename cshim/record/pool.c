#define _GNU_SOURCE
/* Pools of the program's own: include/memtrace.h documents each function. A pool's name and device are in a slot of a
 * table; a handle is the slot's number and, above it, a generation. */
#define MEMTRACE_IMPLEMENTATION
#include "include/memtrace.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/thread.h"
#include "record/capture.h"
#include "spool/dict.h"
#include "spool/ring.h"

#define MT_HOOK(...)
#define MT_CUSTOM(...)
#define MT_REPORT(number, symbol, ...) MT_ID_##symbol = number,
enum mt_id {
#include "hooks.def"
};

#define SLOT_BITS 12u
_Static_assert(1u << SLOT_BITS == MEMTRACE_POOLS_MAX, "the header's promise");

static struct pool {
  uint64_t handle; /* 0 free, TAKEN while it is filled in */
  int8_t device;
  uint8_t size;
  char name[MEMTRACE_NAME_MAX];
} pools[MEMTRACE_POOLS_MAX];
static uint64_t created; /* in all; where the next one searches for a slot */

#define TAKEN UINT64_MAX

static struct pool *find(uint64_t handle) {
  struct pool *pool = &pools[handle & (MEMTRACE_POOLS_MAX - 1)];
  bool is = handle && handle != TAKEN && __atomic_load_n(&pool->handle, __ATOMIC_ACQUIRE) == handle;
  return is ? pool : NULL;
}

MT_EXPORT uint64_t memtrace_pool_create(const char *name, int device) {
  size_t size = name ? strnlen(name, MEMTRACE_NAME_MAX + 1) : 0;
  if (!size || size > MEMTRACE_NAME_MAX || mt_config.disabled) return 0; /* a recording may begin later */
  for (uint32_t tries = 0; tries < MEMTRACE_POOLS_MAX; tries++) {
    uint64_t number = __atomic_fetch_add(&created, 1, __ATOMIC_RELAXED), free_slot = 0;
    struct pool *pool = &pools[number & (MEMTRACE_POOLS_MAX - 1)];
    if (!__atomic_compare_exchange_n(&pool->handle, &free_slot, TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      continue;
    pool->device = (int8_t)(device >= 0 && device <= INT8_MAX ? device : MEMTRACE_POOL_HOST);
    pool->size = (uint8_t)size;
    memcpy(pool->name, name, size);
    uint64_t handle = number + MEMTRACE_POOLS_MAX; /* never 0 */
    __atomic_store_n(&pool->handle, handle, __ATOMIC_RELEASE);
    return handle;
  }
  return 0;
}

static void record(const struct pool *pool, uint64_t handle, uint8_t kind, uint16_t id, uint64_t addr, uint64_t size,
                   const struct mt_frame *frame) {
  int error = errno;
  struct mt_thread *self = mt_recorder_is_off() ? NULL : mt_thread_recording_now();
  struct mt_stacks stacks = self ? mt_capture(self, frame, frame->caller, kind) : (struct mt_stacks){0, 0};
  uint32_t name = self ? mt_dict_intern(MT_DICT_STRING, pool->name, pool->size) : 0;
  struct mt_record *r = self ? mt_record_open(self, kind) : NULL;
  if (r) {
    uint64_t outer = mt_seq_begin(self), seq = mt_seq_draw();
    memset((char *)r + sizeof r->seq, 0, sizeof *r - sizeof r->seq);
    r->ticks = mt_clock_ticks();
    r->addr = addr;
    r->size = size;
    r->owner = handle;
    r->stack = stacks.native;
    r->pystack = stacks.python;
    r->tag = self->tag;
    r->api = id;
    r->kind = kind;
    r->device = pool->device;
    r->name = name;
    mt_record_commit(self, r, seq);
    mt_seq_end(self, outer);
  }
  errno = error;
}

MT_EXPORT int memtrace_pool_alloc(uint64_t pool, const void *ptr, size_t bytes) {
  const struct pool *of = find(pool);
  if (!of) return MEMTRACE_ERR_POOL;
  if (ptr && bytes)
    record(of, pool, MT_ALLOC, MT_ID_memtrace_pool_alloc, (uint64_t)ptr, bytes, __builtin_frame_address(0));
  return MEMTRACE_OK;
}

MT_EXPORT int memtrace_pool_free(uint64_t pool, const void *ptr) {
  const struct pool *of = find(pool);
  if (!of) return MEMTRACE_ERR_POOL;
  if (ptr) record(of, pool, MT_FREE, MT_ID_memtrace_pool_free, (uint64_t)ptr, 0, __builtin_frame_address(0));
  return MEMTRACE_OK;
}

MT_EXPORT void memtrace_pool_destroy(uint64_t pool) {
  struct pool *of = find(pool);
  if (!of) return;
  record(of, pool, MT_DESTROY, MT_ID_memtrace_pool_destroy, pool, 0, __builtin_frame_address(0));
  __atomic_compare_exchange_n(&of->handle, &pool, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
