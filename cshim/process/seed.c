#define _GNU_SOURCE
/* What was there when recording began, as PyTorch tells it: python/memtrace/_start.py calls these. They stand in no header. first and second are the two parts of a private pool's name. */
#include <stdint.h>

#include "adapters/torch.h"
#include "allocator/place.h"
#include "base/thread.h"

MT_EXPORT void memtrace_seed_block(uint64_t address, uint64_t size, uint64_t requested, uint64_t allocated, uint64_t reserved, uint64_t stream, uint64_t first, uint64_t second, int device);
MT_EXPORT void memtrace_seed_block(uint64_t address, uint64_t size, uint64_t requested, uint64_t allocated, uint64_t reserved, uint64_t stream, uint64_t first, uint64_t second, int device) {
  mt_torch_record_block(&(struct mt_torch_block){address, size, requested, allocated, reserved, stream, mt_place_pool(first, second), device});
}

MT_EXPORT void memtrace_seed_segment(uint64_t address, uint64_t size, int device);
MT_EXPORT void memtrace_seed_segment(uint64_t address, uint64_t size, int device) { mt_torch_record_segment(address, size, device); }
