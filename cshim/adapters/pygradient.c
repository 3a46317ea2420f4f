#define _GNU_SOURCE
#include "adapters/pygradient.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "python/interpreter.h"
#include "python/pyapi.h"

#define API(F)                                                                              \
  F(void *, item, (void *, intptr_t), "PyTuple_GetItem") /* borrowed */                     \
  F(intptr_t, tuple_size, (void *), "PyTuple_Size")                                         \
  F(intptr_t, list_size, (void *), "PyList_Size")                                           \
  F(void *, list_item, (void *, intptr_t), "PyList_GetItem") /* borrowed */                 \
  F(void *, list, (intptr_t), "PyList_New")                                                 \
  F(int, append, (void *, void *), "PyList_Append")                                         \
  F(intptr_t, dict_size, (void *), "PyDict_Size")                                           \
  F(int, next, (void *, intptr_t *, void **, void **), "PyDict_Next") /* borrowed */        \
  F(void *, frame, (void), "PyEval_GetFrame") /* borrowed */                                \
  F(void *, attribute, (void *, const char *), "PyObject_GetAttrString")                    \
  F(int, is_true, (void *), "PyObject_IsTrue")                                              \
  F(const char *, text, (void *, intptr_t *), "PyUnicode_AsUTF8AndSize") /* borrowed */     \
  F(void *, call, (void *, ...), "PyObject_CallFunctionObjArgs")                            \
  F(void, clear_error, (void), "PyErr_Clear")                                               \
  F(void, incref, (void *), "Py_IncRef")                                                    \
  F(void, decref, (void *), "Py_DecRef")

static struct {
  MT_PYAPI_PLACES(API)
} api;
static void *none, *function_type;

bool mt_pygradient_find(void) {
  none = (void *)mt_interpreter_variable("_Py_NoneStruct");
  function_type = (void *)mt_interpreter_variable("PyCFunction_Type");
  return none && function_type && mt_pyapi_find(MT_PYAPI_NAMES(API), &api);
}

static void *nothing(void) {
  api.clear_error();
  api.incref(none);
  return none;
}

/* A function that the program put in its place would run its code, and let other threads run. */
static bool is_builtin(const void *object) { return object && mt_pyapi_type_of(object) == function_type; }

enum { BACKWARD, FRAMEWORK, STANDARD, FOLDERS };
enum { ENABLED, DISABLE, ENABLE, COLLECTOR };

struct request {
  void *tensors, *grad, *frames, *collector[COLLECTOR];
  const char *folders[FOLDERS];
};

static bool read_arguments(void *arguments, struct request *a) {
  intptr_t size;
  if (api.tuple_size(arguments) != 5) return false;
  void *collector = api.item(arguments, 3), *folders = api.item(arguments, 4);
  *a = (struct request){
      .tensors = api.item(arguments, 0), .grad = api.item(arguments, 1), .frames = api.item(arguments, 2)};
  bool right = is_builtin(a->frames) && api.list_size(a->tensors) >= 0;
  for (int i = 0; right && i < COLLECTOR; i++) right = is_builtin(a->collector[i] = api.item(collector, i));
  for (int i = 0; right && i < FOLDERS; i++) {
    void *folder = api.item(folders, i);
    right = folder && (a->folders[i] = api.text(folder, &size));
  }
  return right;
}

enum place { IN_BACKWARD, IN_FRAMEWORK, IN_PROGRAM, IN_LIBRARY, IN_STANDARD };

static bool is_in(const char *file, const char *folder) { return *folder && !strncmp(file, folder, strlen(folder)); }

static enum place place_of_file(const char *file, const struct request *a) {
  if (is_in(file, a->folders[BACKWARD])) return IN_BACKWARD;
  if (is_in(file, a->folders[FRAMEWORK])) return IN_FRAMEWORK;
  if (strstr(file, "/site-packages/") || strstr(file, "/dist-packages/")) return IN_LIBRARY;
  return is_in(file, a->folders[STANDARD]) || is_in(file, "<frozen ") ? IN_STANDARD : IN_PROGRAM;
}

/* An unknown place counts as a backward pass. */
static enum place place_of(void *frame, const struct request *a) {
  intptr_t size;
  void *code = api.attribute(frame, "f_code"), *name = code ? api.attribute(code, "co_filename") : NULL;
  const char *file = name ? api.text(name, &size) : NULL;
  enum place place = file ? place_of_file(file, a) : IN_BACKWARD;
  if (name) api.decref(name);
  if (code) api.decref(code);
  return place;
}

/* Whether a thread that is in a frame cannot be writing a gradient; for the calling thread only a backward pass that
 * led here counts. */
static bool is_harmless(void *frame, bool own, const struct request *a) {
  bool libraries = true;
  enum place innermost = place_of(frame, a), place = innermost;
  api.incref(frame);
  while (frame && frame != none && place != IN_BACKWARD) {
    void *caller = api.attribute(frame, "f_back");
    api.decref(frame);
    libraries &= place != IN_FRAMEWORK && place != IN_PROGRAM;
    frame = caller;
    if (frame && frame != none) place = place_of(frame, a);
  }
  bool whole = frame == none;
  if (frame) api.decref(frame);
  return whole && place != IN_BACKWARD && (own || innermost == IN_STANDARD || libraries);
}

static bool are_harmless(const struct request *a) {
  void *frames = api.call(a->frames, NULL), *frame, *key, *own = api.frame();
  intptr_t at = 0, count = frames ? api.dict_size(frames) : -1;
  bool harmless = count > 0 && (count == 1 || !mt_interpreter.layout.free_threaded);
  while (harmless && api.next(frames, &at, &key, &frame)) harmless = is_harmless(frame, frame == own, a);
  if (frames) api.decref(frames);
  return harmless;
}

static void *read_gradients(const struct request *a) {
  void *found = api.list(0);
  bool whole = found != NULL;
  for (intptr_t i = 0; whole && i < api.list_size(a->tensors); i++) {
    void *gradient = api.call(a->grad, api.list_item(a->tensors, i), NULL);
    if (!gradient) gradient = nothing();
    whole = !api.append(found, gradient);
    api.decref(gradient);
  }
  if (whole || !found) return found;
  api.decref(found);
  return NULL;
}

static bool call_collector(void *function, int *value) {
  void *result = api.call(function, NULL);
  if (value && result) *value = api.is_true(result);
  if (result) api.decref(result);
  return result;
}

void *mt_pygradients(void *self, void *arguments) {
  (void)self;
  struct request a;
  int error = errno, enabled = 0;
  void *found = NULL;
  if (read_arguments(arguments, &a) && call_collector(a.collector[ENABLED], &enabled) &&
      (!enabled || call_collector(a.collector[DISABLE], NULL))) {
    if (are_harmless(&a)) found = read_gradients(&a);
    api.clear_error();
    if (enabled) call_collector(a.collector[ENABLE], NULL);
  }
  api.clear_error();
  errno = error;
  return found ? found : nothing();
}
