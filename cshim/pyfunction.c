#define _GNU_SOURCE
#include "pyfunction.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "backward.h"
#include "clock.h"
#include "dict.h"
#include "interpreter.h"
#include "ring.h"

/* How the interpreter calls a function (PyMethodDef). */
enum { ONE_ARGUMENT = 8, NO_ARGUMENTS = 4, SEVERAL_ARGUMENTS = 1 };

struct method {
  const char *name;
  void *(*function)(void *self, void *arguments);
  int flags;
  const char *text;
};

static struct {
  void *(*function)(struct method *, void *, void *);
  int (*set)(void *, const char *, void *);
  const char *(*text)(void *, intptr_t *); /* borrowed */
  int (*bytes)(void *, char **, intptr_t *);
  void *(*number)(unsigned long long);
  unsigned long long (*from_number)(void *);
  void *(*item)(void *, intptr_t); /* of a tuple, borrowed */
  intptr_t (*list_size)(void *);
  void *(*list_item)(void *, intptr_t); /* borrowed */
  void *(*list)(intptr_t);
  int (*append)(void *, void *);
  int (*is_subtype)(void *, void *);
  void (*clear_error)(void);
  void (*take)(void *);
  void (*give)(void *);
  void *none, *list_type;
} api;

bool mt_pysymbols_find(const struct mt_pysymbol *symbols, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uintptr_t address = mt_interpreter_symbol(symbols[i].name);
    if (!address) return false;
    memcpy(symbols[i].place, &address, sizeof address);
  }
  return true;
}

bool mt_pyfunctions_find(void) {
  static const struct mt_pysymbol symbols[] = {
      {"PyCFunction_NewEx", &api.function}, {"PyDict_SetItemString", &api.set}, {"PyUnicode_AsUTF8AndSize", &api.text}, {"PyBytes_AsStringAndSize", &api.bytes},
      {"PyLong_FromUnsignedLongLong", &api.number}, {"PyLong_AsUnsignedLongLong", &api.from_number}, {"PyTuple_GetItem", &api.item}, {"PyList_Size", &api.list_size},  {"PyList_GetItem", &api.list_item},
      {"PyList_New", &api.list},            {"PyList_Append", &api.append},     {"PyType_IsSubtype", &api.is_subtype},  {"PyErr_Clear", &api.clear_error},
      {"Py_IncRef", &api.take},             {"Py_DecRef", &api.give},
  };
  api.none = (void *)mt_interpreter_variable("_Py_NoneStruct");
  api.list_type = (void *)mt_interpreter_variable("PyList_Type");
  return api.none && api.list_type && mt_pysymbols_find(symbols, sizeof symbols / sizeof *symbols);
}

void mt_pyfunctions_keep(void *object) { api.take(object); }

static void *nothing(void) {
  api.clear_error();
  api.take(api.none);
  return api.none;
}

static void *type_of(const void *object) {
  void *type;
  memcpy(&type, (const char *)object + mt_interpreter.layout.object_type, sizeof type);
  return type;
}

/* epoch() -> int: of the recording; what intern gave holds as long as this is the same. 0: none. */
static void *epoch(void *self, void *none) {
  (void)self, (void)none;
  return api.number(__atomic_load_n(&mt_live->epoch, __ATOMIC_ACQUIRE));
}

/* intern(str) -> int: number of a name, 0 where there is no room or it is no text. */
static void *intern(void *self, void *text) {
  (void)self;
  int error = errno;
  intptr_t size;
  const char *name = api.text(text, &size);
  if (!name) api.clear_error();
  uint32_t id = name && size > 0 && mt_thread_recording_now() ? mt_dict_intern_spare(MT_DICT_STRING, name, (size_t)size) : 0;
  errno = error;
  return api.number(id);
}

/* As scripts pack it: struct.Struct("<QQQII"). */
struct row {
  uint64_t address, size, object;
  uint32_t name, category;
};

static void write_row(struct mt_thread *self, const struct row *row) {
  struct mt_record *r = mt_record_open(self);
  if (!r) return;
  uint64_t outer = mt_seq_begin(self), seq = mt_seq_draw();
  memset((char *)r + sizeof r->seq, 0, sizeof *r - sizeof r->seq);
  r->ticks = mt_clock_ticks();
  r->addr = row->address;
  r->size = row->size;
  r->handle = row->object;
  r->name = row->name;
  r->api = (uint16_t)row->category;
  r->kind = MT_NAME;
  r->device = -1;
  mt_record_commit(self, r, seq);
  mt_seq_end(self, outer);
}

/* emit(bytes): the epoch in eight bytes, then rows. Nothing happens when the epoch is over. */
static void *emit(void *self, void *bytes) {
  (void)self;
  int error = errno;
  char *data;
  intptr_t size;
  struct mt_thread *thread = mt_thread_recording_now();
  uint64_t wanted;
  if (thread && !api.bytes(bytes, &data, &size) && size >= (intptr_t)sizeof wanted) {
    memcpy(&wanted, data, sizeof wanted);
    struct row row;
    if (wanted == __atomic_load_n(&mt_live->epoch, __ATOMIC_ACQUIRE))
      for (intptr_t at = sizeof wanted; at + (intptr_t)sizeof row <= size; at += sizeof row) {
        memcpy(&row, data + at, sizeof row);
        if (row.category && row.category <= UINT16_MAX) write_row(thread, &row);
      }
  }
  errno = error;
  return nothing();
}

/* emit_at(rows, addresses): rows as emit takes them, whose addresses stand apart, as 64-bit numbers. Those without one are left out. */
static void *emit_at(void *self, void *arguments) {
  (void)self;
  int error = errno;
  char *data, *places;
  intptr_t size, room;
  uint64_t wanted;
  struct mt_thread *thread = mt_thread_recording_now();
  void *rows = api.item(arguments, 0), *addresses = rows ? api.item(arguments, 1) : NULL;
  if (thread && addresses && !api.bytes(rows, &data, &size) && !api.bytes(addresses, &places, &room) && size >= (intptr_t)sizeof wanted) {
    memcpy(&wanted, data, sizeof wanted);
    struct row row;
    if (wanted == __atomic_load_n(&mt_live->epoch, __ATOMIC_ACQUIRE))
      for (intptr_t at = sizeof wanted, place = 0; at + (intptr_t)sizeof row <= size && place + (intptr_t)sizeof row.address <= room; at += sizeof row, place += sizeof row.address) {
        memcpy(&row, data + at, sizeof row);
        memcpy(&row.address, places + place, sizeof row.address);
        if (row.address && row.category && row.category <= UINT16_MAX) write_row(thread, &row);
      }
  }
  errno = error;
  return nothing();
}

enum { TYPES = 1024 }; /* a power of two */

/* Whether the type is the wanted one or below it, remembered by type: there are a thousand times as many objects as types. */
struct verdicts {
  void *types[TYPES];
  bool below[TYPES];
};

static bool is_below(struct verdicts *known, void *type, void *wanted) {
  size_t at = ((uintptr_t)type >> 4) * 0x9E3779B97F4A7C15ull >> 32 & (TYPES - 1);
  if (known->types[at] != type) {
    known->types[at] = type;
    known->below[at] = api.is_subtype(type, wanted);
  }
  return known->below[at];
}

/* instances((list, type)) -> list: those of the objects that are of the type or of one below it. Asks no object, which might be a proxy that wakes up. */
static void *instances(void *self, void *arguments) {
  static struct verdicts known; /* with the interpreter's lock held */
  (void)self;
  void *objects = api.item(arguments, 0), *wanted = objects ? api.item(arguments, 1) : NULL;
  void *found = wanted && type_of(objects) == api.list_type ? api.list(0) : NULL;
  if (!found) return nothing();
  memset(&known, 0, sizeof known);
  for (intptr_t i = 0; i < api.list_size(objects); i++) {
    void *object = api.list_item(objects, i);
    if (is_below(&known, type_of(object), wanted) && api.append(found, object)) break;
  }
  api.clear_error();
  return found;
}

/* Where a frame object has its frame from 3.11 on: behind the head of an object and the caller's frame object. */
enum { FRAME_OF_OBJECT = 24, FRAME_VARIABLES = 4096 };

/* variables((frame, count)) -> list: the first so many variables of a function that runs, None for those without a value; None where the interpreter has another way to read them
 * without changing anything, from 3.13 on. The caller takes the count from the frame's code. */
static void *variables(void *self, void *arguments) {
  (void)self;
  const struct mt_pylayout *layout = &mt_interpreter.layout;
  const char *frame = api.item(arguments, 0);
  void *wanted = frame ? api.item(arguments, 1) : NULL;
  unsigned long long count = wanted ? api.from_number(wanted) : 0;
  if (!wanted || !layout->frame_locals || layout->minor > 12 || count > FRAME_VARIABLES) return nothing();
  if (layout->shape != MT_PY_OBJECTS) memcpy(&frame, frame + FRAME_OF_OBJECT, sizeof frame);
  void *found = api.list(0);
  for (unsigned i = 0; found && i < count; i++) {
    void *value;
    memcpy(&value, frame + layout->frame_locals + i * sizeof value, sizeof value);
    if (api.append(found, value ? value : api.none)) break;
  }
  api.clear_error();
  return found;
}

/* link_begin() -> int, link_look(), link_end((first, second)) -> int: the test of cshim/backward.h. */
static void *link_begin(void *self, void *none) {
  (void)self, (void)none;
  return api.number(mt_backward_begin());
}

static void *link_look(void *self, void *none) {
  (void)self, (void)none;
  mt_backward_look();
  return nothing();
}

static void *link_end(void *self, void *arguments) {
  (void)self;
  void *first = api.item(arguments, 0), *second = first ? api.item(arguments, 1) : NULL;
  if (!second) return nothing();
  return api.number(mt_backward_end(api.from_number(first), api.from_number(second)));
}

static struct method methods[] = {
    {"link_begin", link_begin, NO_ARGUMENTS, NULL},
    {"link_look", link_look, NO_ARGUMENTS, NULL},
    {"link_end", link_end, SEVERAL_ARGUMENTS, NULL},
    {"epoch", epoch, NO_ARGUMENTS, NULL},
    {"intern", intern, ONE_ARGUMENT, NULL},
    {"emit", emit, ONE_ARGUMENT, NULL},
    {"emit_at", emit_at, SEVERAL_ARGUMENTS, NULL},
    {"instances", instances, SEVERAL_ARGUMENTS, NULL},
    {"variables", variables, SEVERAL_ARGUMENTS, NULL},
};

bool mt_pyfunctions_add(void *globals) {
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
    void *function = api.function(&methods[i], NULL, NULL);
    bool put = function && !api.set(globals, methods[i].name, function);
    if (function) api.give(function);
    if (!put) return false;
  }
  return true;
}
