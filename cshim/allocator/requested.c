#define _GNU_SOURCE
/* Two functions of torch run between a request and the report of its block, and libraries call them through their
 * global offset tables: the rounding of sizes is looked up for every request of 512 bytes or more, and the bytes of a
 * tensor's storage are computed for every tensor, on whatever device. Each leaves its result with its thread; the
 * report takes the first, or for the smallest blocks the second, and clears both. In a version that calls neither,
 * requests are unknown. */
#include "allocator/requested.h"

#include <stddef.h>

#include "allocator/bind.h"
#include "base/thread.h"

__thread struct mt_requested mt_requested;

#define MT_HOOK(...)
#define MT_CUSTOM(...)
#define MT_REPORT(number, symbol, mangled, shape) MT_REPORT_##shape(number, mangled)
#define MT_REPORT_OWN(number, mangled)
#define MT_REPORT_USAGE(number, mangled)
#define MT_REPORT_OOM(number, mangled)
#define MT_REPORT_STREAM(number, mangled)
#define MT_REPORT_POOL(number, mangled)
#define MT_REPORT_TEXT(number, mangled)
#define MT_REPORT_STRING(number, mangled)

#define MT_REPORT_ROUND(number, mangled)      \
  static struct mt_slot slot_##number;        \
  MT_EXPORT size_t mangled(size_t bytes);     \
  MT_EXPORT size_t mangled(size_t bytes) {    \
    MT_ORIGINAL(number, mangled);             \
    mt_requested.rounded = bytes;             \
    return ((size_t (*)(size_t))real)(bytes); \
  }

/* A list, as torch's ArrayRef, travels in two registers. */
#define MT_REPORT_DENSE(number, mangled)                                                                         \
  static struct mt_slot slot_##number;                                                                           \
  MT_EXPORT size_t mangled(const int64_t *sizes, size_t dimensions, size_t item, size_t offset);                 \
  MT_EXPORT size_t mangled(const int64_t *sizes, size_t dimensions, size_t item, size_t offset) {                \
    MT_ORIGINAL(number, mangled);                                                                                \
    size_t bytes = ((size_t (*)(const int64_t *, size_t, size_t, size_t))real)(sizes, dimensions, item, offset); \
    mt_requested.storage = bytes;                                                                                \
    return bytes;                                                                                                \
  }

#define MT_REPORT_STRIDED(number, mangled) \
  static struct mt_slot slot_##number; \
  MT_EXPORT size_t mangled(const int64_t *sizes, size_t dimensions, const int64_t *strides, size_t strides_count, \
                           size_t item, size_t offset); \
  MT_EXPORT size_t mangled(const int64_t *sizes, size_t dimensions, const int64_t *strides, size_t strides_count, \
                           size_t item, size_t offset) { \
    MT_ORIGINAL(number, mangled); \
    size_t bytes = ((size_t (*)(const int64_t *, size_t, const int64_t *, size_t, size_t, size_t))real)( \
        sizes, dimensions, strides, strides_count, item, offset); \
    mt_requested.storage = bytes; \
    return bytes; \
  }

#include "hooks.def"
