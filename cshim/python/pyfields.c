#include "python/pyfields.h"

#include <stdint.h>
#include <string.h>

#include "python/interpreter.h"
#include "python/pyapi.h"

#define API(F)                                                              \
  F(void **, dictionary, (void *), "?_PyObject_GetDictPtr") /* to 3.10 */   \
  F(intptr_t, list_size, (void *), "PyList_Size")                           \
  F(void *, list_item, (void *, intptr_t), "PyList_GetItem") /* borrowed */ \
  F(void *, list, (intptr_t), "PyList_New")                                 \
  F(int, append, (void *, void *), "PyList_Append")                         \
  F(void *, number, (long), "PyLong_FromLong")                              \
  F(void, clear_error, (void), "PyErr_Clear")                               \
  F(void, decref, (void *), "Py_DecRef")

static struct {
  MT_PYAPI_PLACES(API)
} api;

bool mt_pyfields_find(void) { return mt_pyapi_find(MT_PYAPI_NAMES(API), &api); }

#define MANAGED_DICTIONARY (1ul << 4) /* Py_TPFLAGS_MANAGED_DICT (from 3.11 on) and Py_TPFLAGS_INLINE_VALUES (from
                                         3.13 on) */
#define VALUES_INSIDE (1ul << 2)

enum { NEWEST_KNOWN = 13 };

/* From 3.11 on the words before an object lead to its dictionary, or to inline values without one: those have a word of
 * their own in 3.11, later they share one (CPython, Include/internal/pycore_object.h). Objects of classes derived from
 * a C class, such as tensors, have neither at first. From 3.13 on some, and later most, have their values inside the
 * object: a dictionary over these makes nothing slower. */
static bool may_have_fields(const void *object) {
  const struct mt_pylayout *layout = &mt_interpreter.layout;
  if (layout->minor < 11) {
    if (!api.dictionary) return true;
    void **place = api.dictionary((void *)(uintptr_t)object); /* makes none there */
    return place && *place;
  }
  unsigned long flags;
  memcpy(&flags, (const char *)mt_pyapi_type_of(object) + layout->type_flags, sizeof flags);
  if (layout->free_threaded || layout->minor > NEWEST_KNOWN || !(flags & MANAGED_DICTIONARY) ||
      (layout->minor >= 13 && flags & VALUES_INSIDE))
    return true;
  void *const *words = (void *const *)object;
  return words[-3] || (layout->minor == 11 && words[-4]);
}

static bool add(void *found, intptr_t place) {
  void *number = api.number((long)place);
  bool added = number && !api.append(found, number);
  if (number) api.decref(number);
  return added;
}

void *mt_pyfields(void *self, void *list) {
  (void)self;
  void *found = api.list(0);
  for (intptr_t i = 0, count = api.list_size(list); found && i < count; i++)
    if (may_have_fields(api.list_item(list, i)) && !add(found, i)) break;
  if (found) api.clear_error();
  return found;
}
