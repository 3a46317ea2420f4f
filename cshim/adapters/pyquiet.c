#define _GNU_SOURCE
#include "adapters/pyquiet.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "python/interpreter.h"
#include "python/pyapi.h"

/* Before 3.11 a thread's tracing is held by counting up a word of its state, which is in one place from 3.8 to 3.10;
 * later by functions. */
#define MT_PY_TRACING 44u

#define MT_TRACEBACK_MAX 1000u

#define API(F)                                                                      \
  F(void *, thread, (void), "PyThreadState_Get")                                    \
  F(void, hold_tracing, (void *), "?PyThreadState_EnterTracing")                    \
  F(void, release_tracing, (void *), "?PyThreadState_LeaveTracing")                 \
  F(void *, call, (void *, void *, void *), "PyObject_Call")                        \
  F(void *, call_with, (void *, ...), "PyObject_CallFunctionObjArgs")               \
  F(void *, modules, (void), "PyImport_GetModuleDict") /* borrowed */               \
  F(void *, item, (void *, const char *), "PyDict_GetItemString") /* borrowed */    \
  F(void *, attribute, (void *, const char *), "PyObject_GetAttrString")            \
  F(int, set_attribute, (void *, const char *, void *), "PyObject_SetAttrString")   \
  F(void *, number, (long), "PyLong_FromLong")                                      \
  F(int, matches, (void *, void *), "PyErr_GivenExceptionMatches")                  \
  F(int, same_text, (void *, const char *), "PyUnicode_CompareWithASCIIString")     \
  F(void *, error, (void), "PyErr_Occurred") /* borrowed */                         \
  F(void, fetch_error, (void **, void **, void **), "PyErr_Fetch")                  \
  F(void, normalize_error, (void **, void **, void **), "PyErr_NormalizeException") \
  F(void, restore_error, (void *, void *, void *), "PyErr_Restore")                 \
  F(void, clear_error, (void), "PyErr_Clear")                                       \
  F(void, incref, (void *), "Py_IncRef")                                            \
  F(void, decref, (void *), "Py_DecRef")

static struct {
  MT_PYAPI_PLACES(API)
} api;
static void *none, **interrupt;

bool mt_pyquiet_find(void) {
  none = (void *)mt_interpreter_variable("_Py_NoneStruct");
  interrupt = (void **)mt_interpreter_variable("PyExc_KeyboardInterrupt");
  return none && interrupt && mt_pyapi_find(MT_PYAPI_NAMES(API), &api);
}

static void hold_tracing(void *thread) {
  if (api.hold_tracing && api.release_tracing) api.hold_tracing(thread);
  else if (mt_interpreter.layout.minor <= 10) ++*(int32_t *)((char *)thread + MT_PY_TRACING);
}

static void release_tracing(void *thread) {
  if (api.hold_tracing && api.release_tracing) api.release_tracing(thread);
  else if (mt_interpreter.layout.minor <= 10) --*(int32_t *)((char *)thread + MT_PY_TRACING);
}

bool mt_pyquiet_enter(struct mt_quiet *quiet) {
  quiet->thread = api.thread();
  if (quiet->thread != mt_interpreter.thread_state()) return false;
  api.fetch_error(&quiet->type, &quiet->value, &quiet->trace);
  hold_tracing(quiet->thread);
  return true;
}

void mt_pyquiet_leave(struct mt_quiet *quiet) {
  api.clear_error();
  release_tracing(quiet->thread);
  api.restore_error(quiet->type, quiet->value, quiet->trace);
}

/* New references; NULL without an exception. */
static void *attribute(void *object, const char *name) {
  void *found = object ? api.attribute(object, name) : NULL;
  if (!found) api.clear_error();
  return found;
}

static void decref(void *object) {
  if (object) api.decref(object);
}

/* The code object that a handler runs: a function's, or a method's. */
static void *code_of(void *handler) {
  void *function = attribute(handler, "__func__"), *code = attribute(function ? function : handler, "__code__");
  decref(function);
  return code;
}

/* Whether this is the code of a handler that is set for some signal; NULL: whether any is. */
static bool handles_signals(void *code) {
  void *modules = api.modules(), *module = modules ? api.item(modules, "_signal") : NULL,
       *ask = attribute(module, "getsignal");
  bool found = false;
  for (int i = 1; ask && i < NSIG && !found; i++) {
    void *number = api.number(i), *handler = number ? api.call_with(ask, number, NULL) : NULL,
         *own = handler ? code_of(handler) : NULL;
    found = own && (!code || own == code);
    decref(own), decref(handler), decref(number);
    api.clear_error();
  }
  decref(ask);
  return found;
}

bool mt_pyquiet_has_handlers(void) { return handles_signals(NULL); }

static void *code_at(void *trace) {
  void *frame = attribute(trace, "tb_frame"), *code = attribute(frame, "f_code");
  decref(frame);
  return code;
}

bool mt_pyquiet_is_signal(void *exception) {
  void *trace = attribute(exception, "__traceback__");
  bool found = api.matches(exception, *interrupt);
  for (unsigned i = 0; !found && trace && trace != none && i < MT_TRACEBACK_MAX; i++) {
    void *code = code_at(trace), *next = attribute(trace, "tb_next");
    found = code && handles_signals(code);
    decref(code), decref(trace);
    trace = next;
  }
  decref(trace);
  return found;
}

/* Removes the library's own frames from the beginning of an exception's traceback. */
static void forget_our_frames(void *exception) {
  void *trace = attribute(exception, "__traceback__");
  for (unsigned i = 0; trace && trace != none && i < MT_TRACEBACK_MAX; i++) {
    void *code = code_at(trace), *file = attribute(code, "co_filename");
    bool ours = file && !api.same_text(file, "<memtrace>");
    void *next = ours ? attribute(trace, "tb_next") : NULL;
    decref(file), decref(code);
    if (!ours) break;
    decref(trace);
    trace = next;
  }
  if (trace && api.set_attribute(exception, "__traceback__", trace)) api.clear_error();
  decref(trace);
}

/* Clears the current exception if it is the library's own. */
static bool contain(void) {
  void *type, *value, *trace;
  api.fetch_error(&type, &value, &trace);
  api.normalize_error(&type, &value, &trace);
  if (value && trace && api.set_attribute(value, "__traceback__", trace)) api.clear_error();
  bool ours = !value || !mt_pyquiet_is_signal(value);
  if (!ours) {
    forget_our_frames(value);
    void *rest = attribute(value, "__traceback__");
    if (rest == none) decref(rest), rest = NULL;
    decref(trace);
    api.restore_error(type, value, rest);
  } else
    decref(trace), decref(value), decref(type);
  return ours;
}

void *mt_pyquiet_call(void *function, void *arguments, void *keywords, bool *failed) {
  void *thread = api.thread();
  hold_tracing(thread);
  void *result = api.call(function, arguments, keywords);
  *failed = !result && contain();
  release_tracing(thread);
  if (!*failed) return result;
  api.incref(none);
  return none;
}
