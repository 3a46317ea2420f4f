/* What searches among the program's objects share: functions of the interpreter, a bound, and a table of objects.
 * Internal to the adapters. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "python/pyapi.h"

#define MT_PYSEARCH_API(F)                                                  \
  F(void *, list, (intptr_t), "PyList_New")                                 \
  F(int, append, (void *, void *), "PyList_Append")                         \
  F(intptr_t, length, (void *), "PyList_Size")                              \
  F(void *, list_item, (void *, intptr_t), "PyList_GetItem") /* borrowed */ \
  F(void *, item, (void *, intptr_t), "PyTuple_GetItem") /* borrowed */     \
  F(void *, pack, (intptr_t, ...), "PyTuple_Pack")                          \
  F(void *, number, (unsigned long long), "PyLong_FromUnsignedLongLong")    \
  F(unsigned long long, from_number, (void *), "PyLong_AsUnsignedLongLong") \
  F(int, is_subtype, (void *, void *), "PyType_IsSubtype")                  \
  F(void, clear_error, (void), "PyErr_Clear")                               \
  F(void, incref, (void *), "Py_IncRef")                                    \
  F(void, decref, (void *), "Py_DecRef")

extern struct mt_pysearch_api {
  MT_PYAPI_PLACES(MT_PYSEARCH_API)
} mt_pysearch;
extern void *mt_pysearch_none; /* None */

/* False where the interpreter lacks one of them. */
bool mt_pysearch_find(void);

/* Appends an object to a list, and takes the reference. Either may be NULL. */
void mt_pysearch_append(void *list, void *item);

/* How many references are followed at most, and until when. */
struct mt_pybound {
  uint64_t visits, most, until;
  bool exhausted;
};

/* A bound that ends after so many references or milliseconds. */
static inline struct mt_pybound mt_pybound_of(uint64_t most, uint64_t milliseconds) {
  return (struct mt_pybound){.most = most, .until = mt_clock_monotonic() + milliseconds * 1000000ull};
}

/* A reference is to be followed: true if none is any more. */
static inline bool mt_pybound_is_over(struct mt_pybound *bound) {
  const uint64_t look = 4096; /* visits between two readings of the clock */
  if (bound->exhausted) return true;
  bound->exhausted =
      bound->visits >= bound->most || (bound->visits % look == 0 && mt_clock_monotonic() > bound->until);
  if (!bound->exhausted) bound->visits++;
  return bound->exhausted;
}

/* The slot of an object, in a table with the numbers of entries + 1, of which each begins with its object; an empty
 * slot, 0, if it has none. */
static inline uint32_t *mt_pysearch_slot(uint32_t *slots, uint32_t count, const void *entries, size_t size,
                                         const void *object) {
  uint64_t hash = (uintptr_t)object * 0x9e3779b97f4a7c15ull >> 20;
  for (;; hash++) {
    uint32_t *slot = &slots[hash % count];
    if (!*slot || *(void *const *)((const char *)entries + (*slot - 1) * size) == object) return slot;
  }
}
