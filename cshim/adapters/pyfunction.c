#define _GNU_SOURCE
#include "adapters/pyfunction.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "adapters/adapter.h"
#include "adapters/backward.h"
#include "adapters/pygc.h"
#include "adapters/pygradient.h"
#include "adapters/pypack.h"
#include "adapters/pyquiet.h"
#include "adapters/pyscript.h"
#include "base/wake.h"
#include "elf/recordfunction.h"
#include "python/interpreter.h"
#include "python/pyapi.h"
#include "python/pyfields.h"
#include "spool/dict.h"
#include "spool/namerow.h"

#define API(F)                                                                          \
  F(void *, function, (struct mt_pymethod *, void *, void *), "PyCFunction_NewEx")      \
  F(const char *, text, (void *, intptr_t *), "PyUnicode_AsUTF8AndSize") /* borrowed */ \
  F(int, bytes, (void *, char **, intptr_t *), "PyBytes_AsStringAndSize")               \
  F(void *, number, (unsigned long long), "PyLong_FromUnsignedLongLong")                \
  F(unsigned long long, from_number, (void *), "PyLong_AsUnsignedLongLong")             \
  F(void *, item, (void *, intptr_t), "PyTuple_GetItem") /* borrowed */                 \
  F(intptr_t, list_size, (void *), "PyList_Size")                                       \
  F(void *, list_item, (void *, intptr_t), "PyList_GetItem") /* borrowed */             \
  F(void *, list, (intptr_t), "PyList_New")                                             \
  F(int, append, (void *, void *), "PyList_Append")                                     \
  F(int, is_subtype, (void *, void *), "PyType_IsSubtype")                              \
  F(void *, modules, (void), "PyImport_GetModuleDict") /* borrowed */                   \
  F(void *, import, (const char *), "PyImport_ImportModule")                            \
  F(void *, dict_item, (void *, const char *), "PyDict_GetItemString") /* borrowed */   \
  F(void *, attribute, (void *, const char *), "PyObject_GetAttrString")                \
  F(void *, call, (void *, ...), "PyObject_CallFunctionObjArgs")                        \
  F(void *, pack, (intptr_t, ...), "PyTuple_Pack")                                      \
  F(void, restore_error, (void *, void *, void *), "PyErr_Restore")                     \
  F(void, clear_error, (void), "PyErr_Clear")                                           \
  F(void, incref, (void *), "Py_IncRef")                                                \
  F(void, decref, (void *), "Py_DecRef")

static struct {
  MT_PYAPI_PLACES(API)
} api;
static void *none, *list_type, *tuple_type;

static void *nothing(void) {
  api.clear_error();
  api.incref(none);
  return none;
}

/* epoch() -> int: of the recording; what intern gave holds as long as this is the same. 0: none. */
static void *epoch(void *self, void *none) {
  (void)self, (void)none;
  return api.number(__atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_ACQUIRE));
}

/* intern(str) -> int: number of a name, 0 where there is no room or it is no text. */
static void *intern(void *self, void *text) {
  (void)self;
  int error = errno;
  intptr_t size;
  const char *name = api.text(text, &size);
  if (!name) api.clear_error();
  uint32_t id =
      name && size > 0 && mt_thread_recording_now() ? mt_dict_intern_limited(MT_DICT_STRING, name, (size_t)size) : 0;
  errno = error;
  return api.number(id);
}

/* emit(bytes): the epoch in eight bytes, then rows (cshim/spool/namerow.h). Nothing happens when the epoch is over. */
static void *emit(void *self, void *bytes) {
  (void)self;
  int error = errno;
  char *data;
  intptr_t size;
  struct mt_thread *thread = mt_thread_recording_now();
  if (thread && !api.bytes(bytes, &data, &size)) mt_name_rows(thread, data, (size_t)size, NULL, 0);
  errno = error;
  return nothing();
}

/* emit_at(rows, addresses): rows as for emit, whose addresses are separate, as 64-bit numbers. Those without one are
 * left out. */
static void *emit_at(void *self, void *arguments) {
  (void)self;
  int error = errno;
  char *data, *places;
  intptr_t size, room;
  struct mt_thread *thread = mt_thread_recording_now();
  void *rows = api.item(arguments, 0), *addresses = rows ? api.item(arguments, 1) : NULL;
  if (thread && addresses && !api.bytes(rows, &data, &size) && !api.bytes(addresses, &places, &room))
    mt_name_rows(thread, data, (size_t)size, places, (size_t)room);
  errno = error;
  return nothing();
}

enum { TYPES = 512 /* a power of two; on the stack of the program's thread: 4 KiB */, WANTED = 8 };

/* Whether a type is a wanted one or a subtype, cached by type; the lowest bit is the result: there are a thousand times
 * as many objects as types. */
struct verdicts {
  void *wanted[WANTED];
  unsigned count;
  uintptr_t types[TYPES];
};

static void set_wanted(struct verdicts *known, void *types) {
  if (mt_pyapi_type_of(types) != tuple_type) known->wanted[known->count++] = types;
  else
    for (void *type; known->count < WANTED && (type = api.item(types, known->count)); known->count++)
      known->wanted[known->count] = type;
  api.clear_error();
}

static bool is_one(struct verdicts *known, void *type) {
  for (unsigned i = 0; i < known->count; i++)
    if (api.is_subtype(type, known->wanted[i])) return true;
  return false;
}

static bool is_below(struct verdicts *known, void *type) {
  uintptr_t *place = &known->types[((uintptr_t)type >> 4) * 0x9E3779B97F4A7C15ull >> 32 & (TYPES - 1)];
  if ((*place & ~(uintptr_t)1) != (uintptr_t)type) *place = (uintptr_t)type | is_one(known, type);
  return *place & 1;
}

static void keep_below(struct verdicts *known, void *get_objects, void *found) {
  for (intptr_t i = 0; i < api.list_size(get_objects); i++) {
    void *object = api.list_item(get_objects, i);
    if (is_below(known, mt_pyapi_type_of(object)) && api.append(found, object)) break;
  }
  api.clear_error();
}

/* instances((list, type)) -> list: the objects that are instances of the type or of a subtype. Calls no method of an
 * object, which might be a lazy proxy. */
static void *instances(void *self, void *arguments) {
  (void)self;
  struct verdicts known = {.count = 0};
  void *get_objects = api.item(arguments, 0), *types = get_objects ? api.item(arguments, 1) : NULL;
  void *found = types && mt_pyapi_type_of(get_objects) == list_type ? api.list(0) : NULL;
  if (!found) return nothing();
  set_wanted(&known, types);
  keep_below(&known, get_objects, found);
  return found;
}

struct visit {
  struct verdicts known;
  void *found;
};

static bool visit(void *object, void *argument) {
  struct visit *all = argument;
  return object == all->found || !is_below(&all->known, mt_pyapi_type_of(object)) || !api.append(all->found, object);
}

/* All objects that the collector knows, in a list as gc.get_objects gives it. NULL leaves an exception. */
static void *get_objects(void) {
  void *modules = api.modules(), *gc = modules ? api.dict_item(modules, "gc") : NULL;
  if (gc) api.incref(gc);
  else gc = api.import("gc");
  void *ask = gc ? api.attribute(gc, "get_objects") : NULL, *all = ask ? api.call(ask, NULL) : NULL;
  if (ask) api.decref(ask);
  if (gc) api.decref(gc);
  return all;
}

/* all_instances(type or tuple of types) -> list: of all objects that the collector knows, those of one of the types or
 * of one below. */
static void *all_instances(void *self, void *types) {
  (void)self;
  struct visit all = {.found = api.list(0)};
  if (!all.found) return nothing();
  set_wanted(&all.known, types);
  if (!mt_pygc_visit(visit, &all)) {
    void *everything = get_objects();
    api.decref(all.found);
    if (!(all.found = api.list(0))) return nothing();
    if (everything && mt_pyapi_type_of(everything) == list_type) keep_below(&all.known, everything, all.found);
    if (everything) api.decref(everything);
  }
  api.clear_error();
  return all.found;
}

static enum mt_framework which(void *self) { return (enum mt_framework)api.from_number(self); }

/* call_quietly(*arguments, **keywords): what quietly(function) gives. */
static void *call_quietly(void *function, void *arguments, void *keywords) {
  bool failed;
  int error = errno;
  void *framework = api.item(function, 0), *wanted = api.item(function, 1);
  void *result = mt_pyquiet_call(wanted, arguments, keywords, &failed);
  if (failed) mt_adapter_count_failure(which(framework));
  errno = error;
  return result;
}

static struct mt_pymethod quiet_method = {"memtrace", NULL, MT_PY_WITH_KEYWORDS, NULL};

/* quietly(function) -> callable: calls the function hidden from tracers (cshim/adapters/pyquiet.h) and counts its
 * exceptions. Wrapped in functools.partial, whose calls profilers do not see, where the program has imported that. */
static void *quietly(void *self, void *function) {
  void *pair = api.pack(2, self, function), *call = NULL, *partial = NULL, *modules = api.modules(),
       *functools = modules ? api.dict_item(modules, "functools") : NULL;
  quiet_method.function = call_quietly;
  if (pair) call = api.function(&quiet_method, pair, NULL), api.decref(pair);
  if (call && functools) partial = api.attribute(functools, "partial");
  void *wrapped = partial ? api.call(partial, call, NULL) : NULL;
  if (partial) api.decref(partial);
  if (call && wrapped) api.decref(call);
  if (!wrapped) api.clear_error();
  return wrapped ? wrapped : call ? call : nothing();
}

/* contain(exception): for every exception that a script catches. Counts it, or raises it again if it is what the
 * program's signal handlers raised. */
static void *contain(void *self, void *exception) {
  if (mt_pyquiet_is_signal(exception)) {
    void *type = mt_pyapi_type_of(exception), *trace = api.attribute(exception, "__traceback__");
    if (trace == none) api.decref(trace), trace = NULL;
    api.incref(type);
    api.incref(exception);
    api.restore_error(type, exception, trace);
    return NULL;
  }
  mt_adapter_count_failure(which(self));
  return nothing();
}

/* More than this is a dump, not an account. */
#define ACCOUNT_MAX (1u << 20)

/* account(bytes): kept as account.FRAMEWORK in what is known of the run. */
static void *account(void *self, void *bytes) {
  int error = errno;
  char *data, key[64];
  intptr_t size;
  if (mt_thread_recording_now() && !api.bytes(bytes, &data, &size) && size > 0 && size <= ACCOUNT_MAX) {
    stpcpy(stpcpy(key, "account."), mt_adapter_scripts[which(self)].name);
    mt_dict_info(key, data, (size_t)size);
  }
  errno = error;
  return nothing();
}

/* count_failure() -> int: counts one more failure, and returns how many there were. */
static void *count_failure(void *self, void *unused) {
  (void)unused;
  return api.number(mt_adapter_count_failure(which(self)));
}

/* schedule(milliseconds): has the script's report called after that time, to the next half second, unless it is called
 * before. The last wish counts; 0 takes it back. */
static void *schedule(void *self, void *milliseconds) {
  uint64_t wanted = api.from_number(milliseconds);
  api.clear_error();
  if (wanted <= UINT32_MAX) mt_adapter_schedule(which(self), (uint32_t)wanted);
  return nothing();
}

/* f_frame of a frame object from 3.11 on: after PyObject_HEAD and f_back (CPython, struct _frame). */
enum { FRAME_OF_OBJECT = 24, FRAME_VARIABLES = 4096 };

/* variables((frame, count)) -> list: the first so many variables of a function that runs, None for those without a
 * value; None where the interpreter has another way to read them without changing anything, from 3.13 on. The caller
 * takes the count from the frame's code. */
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
    if (api.append(found, value ? value : none)) break;
  }
  api.clear_error();
  return found;
}

static uint64_t number_of(void *object) {
  uint64_t number = api.from_number(object);
  api.clear_error();
  api.decref(object);
  return number;
}

/* link(): what ties backward to forward (cshim/adapters/backward.h). */
static void *link(void *self, void *unused) {
  (void)self, (void)unused;
  int error = errno;
  mt_backward_link(number_of);
  mt_wake_poll();
  errno = error;
  return nothing();
}

/* record_function(bool) -> int: PyTorch's switch of operator observers for this thread (cshim/elf/recordfunction.h):
 * sets it, and returns what it was. */
static void *record_function(void *self, void *enabled) {
  (void)self;
  unsigned long long wanted = api.from_number(enabled);
  api.clear_error();
  return api.number(mt_record_function_set(wanted != 0));
}

/* In memory that is zero at the start: a table of constants would be changed by the loader, in every process. */
enum { METHODS = 21 };
static struct mt_pymethod methods[METHODS];

static void fill_methods(void) {
  struct mt_pymethod *m = methods;
#define NAMED(name, function, kind) *m++ = (struct mt_pymethod){name, function, kind, NULL}
#define METHOD(name, kind) NAMED(#name, name, kind)
  METHOD(link, MT_PY_NO_ARGUMENTS);
  METHOD(record_function, MT_PY_ONE_ARGUMENT);
  METHOD(epoch, MT_PY_NO_ARGUMENTS);
  METHOD(intern, MT_PY_ONE_ARGUMENT);
  METHOD(emit, MT_PY_ONE_ARGUMENT);
  METHOD(emit_at, MT_PY_SEVERAL_ARGUMENTS);
  NAMED("pack", mt_pypack, MT_PY_SEVERAL_ARGUMENTS);
  NAMED("identities", mt_pypack_identities, MT_PY_ONE_ARGUMENT);
  NAMED("same", mt_pypack_same, MT_PY_SEVERAL_ARGUMENTS);
  NAMED("unchanged", mt_pypack_unchanged, MT_PY_SEVERAL_ARGUMENTS);
  NAMED("addresses", mt_pypack_addresses, MT_PY_SEVERAL_ARGUMENTS);
  NAMED("fielded", mt_pyfields, MT_PY_ONE_ARGUMENT);
  NAMED("gradients", mt_pygradients, MT_PY_SEVERAL_ARGUMENTS);
  METHOD(account, MT_PY_ONE_ARGUMENT);
  METHOD(instances, MT_PY_SEVERAL_ARGUMENTS);
  METHOD(all_instances, MT_PY_ONE_ARGUMENT);
  METHOD(variables, MT_PY_SEVERAL_ARGUMENTS);
  METHOD(quietly, MT_PY_ONE_ARGUMENT);
  METHOD(contain, MT_PY_ONE_ARGUMENT);
  METHOD(count_failure, MT_PY_NO_ARGUMENTS);
  METHOD(schedule, MT_PY_ONE_ARGUMENT);
#undef METHOD
#undef NAMED
}

bool mt_pyfunctions_find(void) {
  none = (void *)mt_interpreter_variable("_Py_NoneStruct");
  list_type = (void *)mt_interpreter_variable("PyList_Type");
  tuple_type = (void *)mt_interpreter_variable("PyTuple_Type");
  fill_methods();
  return none && list_type && tuple_type && mt_pyapi_find(MT_PYAPI_NAMES(API), &api) && mt_pyscript_find() &&
         mt_pyquiet_find() && mt_pygc_find() && mt_pypack_find() && mt_pyfields_find() && mt_pygradient_find();
}

bool mt_pyfunctions_add(void *globals, enum mt_framework framework) {
  void *number = api.number(framework);
  bool all = number != NULL;
  for (unsigned i = 0; i < METHODS && all; i++) all = mt_pyscript_add_function(globals, &methods[i], number);
  if (number) api.decref(number);
  return all;
}
