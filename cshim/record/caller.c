#include "record/caller.h"

#include "spool/module.h"

struct mt_recent *mt_recent_caller(struct mt_thread *self, uintptr_t caller) {
  struct mt_recent *recent = &self->recent[caller * 0x9E3779B97F4A7C15ull >> (64 - MT_RECENT_BITS)];
  uint32_t generation = __atomic_load_n(&mt_module_generation, __ATOMIC_RELAXED);
  if (MT_LIKELY(recent->caller == caller && recent->generation == generation)) return recent;
  recent->real = NULL;
  recent->stack = 0;
  recent->caller = caller;
  recent->generation = generation;
  return recent;
}
