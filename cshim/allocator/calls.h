/* Calls of torch's allocator other than for its blocks. */
#pragma once

/* Virtual functions, in the order of names in vtable.c. */
enum { MT_CALL_BEGIN, MT_CALL_END, MT_CALL_EMPTY, MT_CALL_SET_FRACTION, MT_CALL_FRACTION, MT_CALL_RAW, MT_CALLS };

/* The original of each, and its replacement; NULL: it is not replaced, only called. */
struct mt_allocator_call {
  void *real, *ours;
};
extern struct mt_allocator_call mt_allocator_calls[MT_CALLS];

/* Functions that distinguish versions of torch: what parses settings, and what returns how sizes are rounded. */
#define MT_PARSE_TEXT "_ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig9parseArgsEPKc"
#define MT_PARSE_STRING \
  "_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig9parseArgsERKNSt7__cxx1112basic_stringIcSt11char_" \
  "traitsIcESaIcEEE"
#define MT_ROUND "_ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig24roundup_power2_divisionsEm"
#define MT_ROUND_V2 "_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig24roundup_power2_divisionsEm"

/* Records the settings that were made before recording began, and each device's memory fraction where it is below 1. */
void mt_allocator_record_settings(void);
