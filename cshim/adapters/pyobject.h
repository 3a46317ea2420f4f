/* What the garbage collector knows of an object: whether it collects it, its references (tp_traverse) and how many
 * refer to it. Internal to the adapters. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "python/pyapi.h"

/* Offsets in PyTypeObject (CPython, Include/cpython/object.h), the same in 3.8 to 3.14. */
#define MT_TYPE_FLAGS 168u
#define MT_TYPE_TRAVERSE 184u
#define MT_TYPE_IS_GC 328u
#define MT_HAVE_GC (1ul << 14)
#define MT_IS_TYPE (1ul << 31) /* of the type of a type */

typedef int (*mt_pyvisitor)(void *, void *);

static inline uint64_t mt_pyobject_word(const void *object, unsigned offset) {
  uint64_t found;
  memcpy(&found, (const char *)object + offset, sizeof found);
  return found;
}

static inline bool mt_pyobject_is_collected(void *object) {
  void *type = mt_pyapi_type_of(object);
  if (!(mt_pyobject_word(type, MT_TYPE_FLAGS) & MT_HAVE_GC)) return false;
  int (*ask)(void *) = (int (*)(void *))mt_pyobject_word(type, MT_TYPE_IS_GC);
  return !ask || ask(object);
}

static inline bool mt_pyobject_is_type(void *object) {
  return mt_pyobject_word(mt_pyapi_type_of(object), MT_TYPE_FLAGS) & MT_IS_TYPE;
}

/* Calls tp_traverse: visits what an object refers to until visit returns non-zero. */
static inline void mt_pyobject_traverse(void *object, mt_pyvisitor visit) {
  int (*run)(void *, mt_pyvisitor, void *) =
      (int (*)(void *, mt_pyvisitor, void *))mt_pyobject_word(mt_pyapi_type_of(object), MT_TYPE_TRAVERSE);
  if (run && mt_pyobject_is_collected(object)) run(object, visit, NULL);
}

/* The lower half is the count in every version; it is beyond all others in objects that never go. */
static inline int32_t mt_pyobject_references(const void *object) {
  uint32_t count;
  memcpy(&count, object, sizeof count);
  return count > INT32_MAX ? INT32_MAX : (int32_t)count;
}
