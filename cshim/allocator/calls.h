/* What torch's allocator is called for, beside its blocks. */
#pragma once

/* Virtual functions, as they stand in allocator.c. */
enum { MT_CALL_BEGIN, MT_CALL_END, MT_CALL_EMPTY, MT_CALL_SET_FRACTION, MT_CALL_FRACTION, MT_CALL_RAW, MT_CALLS };

/* The original of each, and what stands in its place; NULL: it stays, and is only asked. */
struct mt_allocator_call {
  void *real, *ours;
};
extern struct mt_allocator_call mt_allocator_calls[MT_CALLS];

/* Functions by which versions of torch are known: what reads settings, and what is asked how sizes are rounded. */
#define MT_PARSE_TEXT "_ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig9parseArgsEPKc"
#define MT_PARSE_STRING \
  "_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig9parseArgsERKNSt7__cxx1112basic_stringIcSt11char_" \
  "traitsIcESaIcEEE"
#define MT_ROUND "_ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig24roundup_power2_divisionsEm"
#define MT_ROUND_V2 "_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig24roundup_power2_divisionsEm"

/* Tells the settings that were made before recording began, and the share of each device that the allocator may take,
 * where that is not all. */
void mt_allocator_record_settings(void);
