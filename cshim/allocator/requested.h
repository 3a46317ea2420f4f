/* How many bytes of a block of torch's allocator were requested. The reports have the block's size, which is rounded up
 * and may include a remainder that was not worth splitting. */
#pragma once

#include <stdint.h>

#define MT_ROUNDED_FROM 512u /* the allocator rounds smaller requests up to this without looking anything up */

/* The calling thread's last request, each 0 if it was not seen since the last report. A thread has it before its first
 * event. */
struct mt_requested {
  uint64_t rounded; /* bytes for which the allocator looked up how to round them */
  uint64_t storage; /* bytes of a tensor's storage */
};
extern __thread struct mt_requested mt_requested __attribute__((tls_model("initial-exec")));

/* The bytes that the block of size bytes was requested with, which this thread reports now; 0 unknown. */
static inline uint64_t mt_requested_take(uint64_t size) {
  uint64_t rounded = mt_requested.rounded, storage = mt_requested.storage;
  mt_requested.rounded = mt_requested.storage = 0;
  if (rounded) return rounded <= size ? rounded : 0;
  return size == MT_ROUNDED_FROM && storage < MT_ROUNDED_FROM ? storage : 0;
}
