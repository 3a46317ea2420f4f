#define _GNU_SOURCE
#include "adapters/pypack.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/thread.h"
#include "python/interpreter.h"
#include "python/pyapi.h"
#include "spool/dict.h"
#include "spool/namerow.h"

#define API(F)                                                                          \
  F(void *, item, (void *, intptr_t), "PyTuple_GetItem") /* borrowed */                 \
  F(intptr_t, tuple_size, (void *), "PyTuple_Size")                                     \
  F(intptr_t, list_size, (void *), "PyList_Size")                                       \
  F(void *, list_item, (void *, intptr_t), "PyList_GetItem") /* borrowed */             \
  F(void *, list, (intptr_t), "PyList_New")                                             \
  F(int, append, (void *, void *), "PyList_Append")                                     \
  F(void *, pack, (intptr_t, ...), "PyTuple_Pack")                                      \
  F(void *, bytes, (const char *, intptr_t), "PyBytes_FromStringAndSize")               \
  F(char *, data, (void *), "PyBytes_AsString")                                         \
  F(int, read, (void *, char **, intptr_t *), "PyBytes_AsStringAndSize")                \
  F(const char *, text, (void *, intptr_t *), "PyUnicode_AsUTF8AndSize") /* borrowed */ \
  F(void *, number, (unsigned long long), "PyLong_FromUnsignedLongLong")                \
  F(unsigned long long, from_number, (void *), "PyLong_AsUnsignedLongLong")             \
  F(void *, in_class, (void *, void *), "?_PyType_Lookup") /* borrowed */               \
  F(void *, attribute, (void *, void *), "PyObject_GenericGetAttr")                     \
  F(intptr_t, dict_size, (void *), "PyDict_Size")                                       \
  F(void *, dict_item, (void *, void *), "PyDict_GetItemWithError") /* borrowed */      \
  F(void *, call, (void *, ...), "PyObject_CallFunctionObjArgs")                        \
  F(void *, error, (void), "PyErr_Occurred") /* borrowed */                             \
  F(void, clear_error, (void), "PyErr_Clear")                                           \
  F(void, incref, (void *), "Py_IncRef")                                                \
  F(void, decref, (void *), "Py_DecRef")

static struct {
  MT_PYAPI_PLACES(API)
} api;
static void *none;

bool mt_pypack_find(void) {
  none = (void *)mt_interpreter_variable("_Py_NoneStruct");
  return none && mt_pyapi_find(MT_PYAPI_NAMES(API), &api);
}

static void *nothing(void) {
  api.clear_error();
  api.incref(none);
  return none;
}

/* The number that a function returns for an object. */
static bool call_for_number(void *function, void *object, uint64_t *outcome) {
  void *number = api.call(function, object, NULL);
  if (!number) return false;
  *outcome = api.from_number(number);
  api.decref(number);
  return *outcome != UINT64_MAX || !api.error();
}

enum { CLASSES = 4, NUMEL = 0, ELEMENT_SIZE, SIZE_CALLS, IS_CUDA = SIZE_CALLS, DATA_PTR, STORAGE_OFFSET, ALL_CALLS };

struct packing {
  uint64_t category;
  void *names, *objects;
  void *classes[CLASSES], *calls[ALL_CALLS];
  unsigned classes_count, calls_count;
};

/* How many a tuple has, at most room of which are put there. */
static unsigned unpack(void *tuple, void **items, unsigned room) {
  intptr_t count = tuple ? api.tuple_size(tuple) : 0;
  unsigned i = 0;
  for (; i < room && i < count; i++) items[i] = api.item(tuple, i);
  return i;
}

static bool is_wanted(const struct packing *p, const void *object) {
  const void *type = mt_pyapi_type_of(object);
  for (unsigned i = 0; i < p->classes_count; i++)
    if (p->classes[i] == type) return true;
  return !p->classes_count;
}

enum outcome { FILLED, NO_MEMORY, LEFT_TO_SCRIPT /* left to the script */ };

/* A tensor's address and size. Most tensors without memory are on another device, and need no other call. */
static enum outcome measure(const struct packing *p, void *tensor, struct mt_name_row *row) {
  uint64_t is_cuda, offset, count, size;
  if (p->calls_count < SIZE_CALLS) return FILLED;
  if (p->calls_count == ALL_CALLS) {
    if (!call_for_number(p->calls[IS_CUDA], tensor, &is_cuda)) return LEFT_TO_SCRIPT;
    if (!is_cuda) return NO_MEMORY;
    if (!call_for_number(p->calls[DATA_PTR], tensor, &row->address)) return LEFT_TO_SCRIPT;
    if (!row->address) return NO_MEMORY;
    if (!call_for_number(p->calls[STORAGE_OFFSET], tensor, &offset) || offset) return LEFT_TO_SCRIPT;
  }
  if (!call_for_number(p->calls[NUMEL], tensor, &count) || !call_for_number(p->calls[ELEMENT_SIZE], tensor, &size))
    return LEFT_TO_SCRIPT;
  row->size = count * size;
  row->category = (uint32_t)(size <= UINT8_MAX ? size : 0) << MT_ELEMENT_SHIFT;
  return FILLED;
}

static uint32_t intern(void *name) {
  intptr_t size;
  const char *text = api.text(name, &size);
  if (!text) api.clear_error();
  return text && size > 0 ? mt_dict_intern_limited(MT_DICT_STRING, text, (size_t)size) : 0;
}

static bool leave_to_script(void *rest, intptr_t index) {
  api.clear_error();
  void *number = api.number((unsigned long long)index);
  bool left = number && !api.append(rest, number);
  if (number) api.decref(number);
  return left;
}

/* False leaves an exception, and incomplete rows. */
static bool pack_all(const struct packing *p, char *rows, intptr_t count, void *rest) {
  bool recording = mt_thread_recording_now() != NULL;
  for (intptr_t i = 0; i < count; i++, rows += sizeof(struct mt_name_row)) {
    void *object = api.list_item(p->objects, i), *name = object ? api.list_item(p->names, i) : NULL;
    struct mt_name_row row = {.object = (uintptr_t)object};
    if (!name) return false;
    enum outcome outcome = is_wanted(p, object) ? measure(p, object, &row) : LEFT_TO_SCRIPT;
    if (outcome == LEFT_TO_SCRIPT && !leave_to_script(rest, i)) return false;
    if (outcome == FILLED) row.name = recording ? intern(name) : 0, row.category |= (uint32_t)p->category;
    else row = (struct mt_name_row){0};
    memcpy(rows, &row, sizeof row);
  }
  return true;
}

void *mt_pypack(void *self, void *arguments) {
  (void)self;
  int error = errno;
  struct packing p;
  void *all[5], *result = NULL;
  if (unpack(arguments, all, 5) < 5) return nothing();
  p.category = api.from_number(all[0]);
  p.names = all[1], p.objects = all[2];
  p.classes_count = unpack(all[3], p.classes, CLASSES);
  p.calls_count = unpack(all[4], p.calls, ALL_CALLS);
  intptr_t count = api.error() ? -1 : api.list_size(p.objects), names = count < 0 ? -1 : api.list_size(p.names);
  if (names < count) count = names;
  void *rest = count < 0 ? NULL : api.list(0),
       *rows = rest ? api.bytes(NULL, count * (intptr_t)sizeof(struct mt_name_row)) : NULL;
  if (rows) {
    if (pack_all(&p, api.data(rows), count, rest)) result = api.pack(2, rows, rest);
    api.decref(rows);
  }
  if (rest) api.decref(rest);
  if (result) api.clear_error();
  errno = error;
  return result ? result : nothing();
}

void *mt_pypack_identities(void *self, void *list) {
  (void)self;
  intptr_t count = api.list_size(list);
  void *found = count < 0 ? NULL : api.bytes(NULL, count * (intptr_t)sizeof(uint64_t));
  if (!found) return nothing();
  char *at = api.data(found);
  for (intptr_t i = 0; i < count; i++, at += sizeof(uint64_t)) {
    uint64_t object = (uintptr_t)api.list_item(list, i);
    memcpy(at, &object, sizeof object);
  }
  api.clear_error();
  return found;
}

/* Whether the list's objects are the next of the identities, past which it advances. */
static bool take_same(void *list, const char **identities, const char *end) {
  intptr_t count = list ? api.list_size(list) : -1;
  if (count < 0 || count > (end - *identities) / (intptr_t)sizeof(uint64_t)) return false;
  for (intptr_t i = 0; i < count; i++, *identities += sizeof(uint64_t)) {
    uint64_t object = (uintptr_t)api.list_item(list, i);
    if (memcmp(*identities, &object, sizeof object)) return false;
  }
  return true;
}

void *mt_pypack_same(void *self, void *arguments) {
  (void)self;
  void *all[2]; /* lists, identities */
  char *identities = NULL;
  intptr_t size,
      count = unpack(arguments, all, 2) == 2 && !api.read(all[1], &identities, &size) ? api.list_size(all[0]) : -1;
  const char *at = identities, *end = count < 0 ? at : at + size;
  bool same = count >= 0;
  for (intptr_t i = 0; i < count && same; i++) same = take_same(api.list_item(all[0], i), &at, end);
  api.clear_error();
  return api.number(same && at == end);
}

/* What the object itself has by a name, a new reference. NULL also where its class has something, which may be the
 * program's code. */
static void *own(void *object, void *name) {
  return api.in_class && !api.in_class(mt_pyapi_type_of(object), name) ? api.attribute(object, name) : NULL;
}

static bool take_same_in(void *group, void *name, const char **identities, const char *end) {
  if (!group) return false;
  api.incref(group); /* comparing keys may be the program's code */
  void *list = api.dict_item(group, name);
  if (list) api.incref(list);
  bool same = take_same(list, identities, end);
  if (list) api.decref(list);
  api.decref(group);
  return same;
}

/* Whether the dictionaries of a list have lists of these objects by a name. */
static bool same_in_groups(void *groups, void *name, const char *identities, const char *end) {
  intptr_t count = groups ? api.list_size(groups) : -1;
  bool same = count >= 0;
  for (intptr_t i = 0; i < count && same; i++) same = take_same_in(api.list_item(groups, i), name, &identities, end);
  return same && identities == end;
}

static bool has_size(void *dictionary, void *size) {
  uint64_t wanted = api.from_number(size);
  return dictionary && !api.error() && api.dict_size(dictionary) == (intptr_t)wanted;
}

void *mt_pypack_unchanged(void *self, void *arguments) {
  (void)self;
  int error = errno;
  void *all[6]; /* optimizer, identities, size of its state, names of its groups, of their parameters, of its state */
  char *identities;
  intptr_t size;
  bool same = unpack(arguments, all, 6) == 6 && !api.read(all[1], &identities, &size);
  if (same) {
    void *groups = own(all[0], all[3]), *state = own(all[0], all[5]);
    same = same_in_groups(groups, all[4], identities, identities + size) && has_size(state, all[2]);
    if (groups) api.decref(groups);
    if (state) api.decref(state);
  }
  api.clear_error();
  errno = error;
  return api.number(same);
}

/* The address that data_ptr gives for an object, or for what of gives for it. */
static bool address_of(void *object, void *data_ptr, void *of, uint64_t *address) {
  *address = 0;
  if (of == none) return call_for_number(data_ptr, object, address);
  void *value = api.call(of, object, NULL);
  bool known = value && (value == none || call_for_number(data_ptr, value, address));
  if (value) api.decref(value);
  return known;
}

void *mt_pypack_addresses(void *self, void *arguments) {
  (void)self;
  int error = errno;
  void *all[3]; /* tensors, data_ptr, of */
  intptr_t count = unpack(arguments, all, 3) == 3 ? api.list_size(all[0]) : -1;
  void *found = count < 0 ? NULL : api.bytes(NULL, count * (intptr_t)sizeof(uint64_t));
  bool whole = found != NULL;
  char *at = found ? api.data(found) : NULL;
  for (intptr_t i = 0; i < count && whole; i++, at += sizeof(uint64_t)) {
    void *tensor = api.list_item(all[0], i);
    uint64_t address = 0;
    whole = tensor && address_of(tensor, all[1], all[2], &address);
    memcpy(at, &address, sizeof address);
  }
  if (found && !whole) api.decref(found);
  errno = error;
  return whole ? found : nothing();
}
