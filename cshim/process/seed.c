#define _GNU_SOURCE
/* What was there when recording began, as PyTorch tells it: python/memtrace/_start.py calls these. They stand in no header. */
#include <stdint.h>

#include "adapters/torch.h"
#include "base/thread.h"

MT_EXPORT void memtrace_seed_block(uint64_t address, uint64_t size, uint64_t requested, uint64_t allocated, uint64_t reserved, int device);
MT_EXPORT void memtrace_seed_block(uint64_t address, uint64_t size, uint64_t requested, uint64_t allocated, uint64_t reserved, int device) {
  mt_torch_record_block(&(struct mt_torch_block){address, size, requested, allocated, reserved, device});
}

MT_EXPORT void memtrace_seed_segment(uint64_t address, uint64_t size, int device);
MT_EXPORT void memtrace_seed_segment(uint64_t address, uint64_t size, int device) { mt_torch_record_segment(address, size, device); }
