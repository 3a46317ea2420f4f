/* The originals of functions that torch's libraries call by name. All callers mean the same one: of two copies of torch
 * in a process each computes the same. */
#pragma once

#include <stdint.h>

#include "base/thread.h"
#include "hooks/original.h"

static inline void *mt_original_bind(struct mt_slot *slot, const char *name, uintptr_t caller) {
  void *real = mt_original_find(name, caller);
  if (!real) __builtin_trap(); /* the caller could not have been loaded */
  return mt_slot_set_fallback(slot, real);
}

/* In a wrapper: declares real, the original of the function whose slot is slot_NUMBER. */
#define MT_ORIGINAL(number, mangled)                                       \
  void *real = __atomic_load_n(&slot_##number.fallback, __ATOMIC_RELAXED); \
  if (MT_UNLIKELY(!real)) real = mt_original_bind(&slot_##number, #mangled, (uintptr_t)__builtin_return_address(0))
