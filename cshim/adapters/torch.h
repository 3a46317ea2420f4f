/* Blocks of torch's allocator from before the library was loaded. */
#pragma once

#include <stdint.h>

/* torch's description of a block that it allocated before. */
struct mt_torch_block {
  uint64_t address, size;
  uint64_t requested;           /* bytes, 0 unknown */
  uint64_t allocated, reserved; /* bytes of the device, this block included */
  uint64_t stream, pool;        /* where it belongs, see allocator/place.h */
  int device;
};

/* Records the block as if it were handed out now, on the calling thread. */
void mt_torch_record_block(const struct mt_torch_block *block);

/* The same for memory that the allocator took from the driver. */
void mt_torch_record_segment(uint64_t address, uint64_t size, int device);

/* Called when the allocator is out of memory, before and after that is recorded, on the allocating thread, with the
 * allocator's lock. Registered once, at load. */
void mt_torch_on_refusal(void (*before)(void), void (*after)(void));
