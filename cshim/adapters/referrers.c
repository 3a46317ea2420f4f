#define _GNU_SOURCE
/* The script runs on a library thread, beside those of the program: the interpreter's lock switches between them as
 * among any Python threads. Only a single pass of the garbage collector over all objects keeps it in one go. */
#include "adapters/referrers.h"

#include <errno.h>
#include <string.h>

#include "adapters/adapter.h"
#include "adapters/pyfreed.h"
#include "adapters/pyfunction.h"
#include "adapters/pyquiet.h"
#include "adapters/pyscript.h"
#include "adapters/pypaths.h"
#include "hooks/query.h"
#include "python/interpreter.h"
#include "python/pyapi.h"
#include "spool/region.h"

#define API(F)                                                              \
  F(int, initialized, (void), "Py_IsInitialized")                           \
  F(int, locked, (void), "PyGILState_Check")                                \
  F(int, stop_collecting, (void), "?PyGC_Disable") /* 3.10 */               \
  F(int, collect_again, (void), "?PyGC_Enable")                             \
  F(int, ensure, (void), "PyGILState_Ensure")                               \
  F(void, release, (int), "PyGILState_Release")                             \
  F(void *, unlock, (void), "PyEval_SaveThread")                            \
  F(void, lock, (void *), "PyEval_RestoreThread")                           \
  F(void, clear, (void *), "PyDict_Clear")                                  \
  F(int, bytes, (void *, char **, intptr_t *), "PyBytes_AsStringAndSize")   \
  F(void *, number, (unsigned long long), "PyLong_FromUnsignedLongLong")    \
  F(unsigned long long, value, (void *), "PyLong_AsUnsignedLongLong")       \
  F(void, clear_error, (void), "PyErr_Clear")                               \
  F(void, fetch_error, (void **, void **, void **), "PyErr_Fetch")          \
  F(void, restore_error, (void *, void *, void *), "PyErr_Restore")         \
  F(int, matches, (void *, void *), "PyErr_GivenExceptionMatches")          \
  F(int, add_pending, (int (*)(void *), void *), "Py_AddPendingCall")       \
  F(void, decref, (void *), "Py_DecRef")

static struct {
  MT_PYAPI_PLACES(API)
} api;

/* One search at a time; with the interpreter's lock. */
static struct mt_referrers *now;
static bool answered;
static char failed_because[256]; /* "" unless the script says why it failed */

/* moment() -> int: all tensors that were found are live and stay so. */
static void *moment(void *self, void *unused) {
  (void)self, (void)unused;
  if (__atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_ACQUIRE))
    now->seq = __atomic_load_n(&mt_header()->seq, __ATOMIC_ACQUIRE);
  return api.number(now->seq);
}

/* answer(bytes) -> int: whether there was room. */
static void *answer(void *self, void *rows) {
  char *text;
  intptr_t size;
  (void)self;
  if (!api.bytes(rows, &text, &size) && (size_t)size <= now->room) {
    memcpy(now->text, text, (size_t)size);
    now->size = (size_t)size;
    answered = true;
  }
  api.clear_error();
  return api.number(answered);
}

/* failed(bytes): the script cannot answer. */
static void *failed(void *self, void *why) {
  static const char lead[] = "the search failed in the process: ";
  char *text;
  intptr_t size;
  (void)self;
  if (!api.bytes(why, &text, &size)) {
    size_t room = sizeof failed_because - sizeof lead, length = (size_t)size < room ? (size_t)size : room;
    *(char *)mempcpy(stpcpy(failed_because, lead), text, length) = 0;
  }
  api.clear_error();
  return api.number(0);
}

/* pinned(int) -> int: whether the driver knows host memory at an address. PyTorch's is_pinned lets go of the
 * interpreter's lock, which a thread of the library does not get back once the interpreter ends. */
static void *pinned(void *self, void *address) {
  enum { CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2, CU_MEMORYTYPE_HOST = 1 };
  int (*query)(void *, int, uint64_t) = mt_query_find(MT_QUERY_POINTER);
  unsigned type = 0;
  (void)self;
  if (query && query(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, api.value(address))) type = 0;
  api.clear_error();
  return api.number(type == CU_MEMORYTYPE_HOST);
}

static bool fill_namespace(void *globals) {
  static struct mt_pymethod methods[6];
  methods[0] = (struct mt_pymethod){"moment", moment, MT_PY_NO_ARGUMENTS, NULL};
  methods[1] = (struct mt_pymethod){"answer", answer, MT_PY_ONE_ARGUMENT, NULL};
  methods[2] = (struct mt_pymethod){"ways", mt_pypaths, MT_PY_SEVERAL_ARGUMENTS, NULL};
  methods[3] = (struct mt_pymethod){"failed", failed, MT_PY_ONE_ARGUMENT, NULL};
  methods[4] = (struct mt_pymethod){"freed", mt_pyfreed, MT_PY_SEVERAL_ARGUMENTS, NULL};
  methods[5] = (struct mt_pymethod){"pinned", pinned, MT_PY_ONE_ARGUMENT, NULL};
  for (unsigned i = 0; i < sizeof methods / sizeof *methods; i++)
    if (!mt_pyscript_add_function(globals, &methods[i], NULL)) return false;
  return mt_pyfunctions_add(globals, MT_TORCH) && mt_pyscript_add_number(globals, "LIMIT", now->limit) &&
         mt_pyscript_add_number(globals, "VISITS", now->visits) &&
         mt_pyscript_add_number(globals, "MILLISECONDS", now->milliseconds) &&
         mt_pyscript_add_number(globals, "ROOM", now->room) &&
         mt_pyscript_add_number(globals, "OWN_PASSES", now->own_passes) &&
         mt_pyscript_add_number(globals, "PASS_MILLISECONDS", now->pass_ms) &&
         mt_pyscript_add_number(globals, "GOES_ON", now->goes_on) &&
         mt_pyscript_add_number(globals, "BRIEF", now->brief);
}

struct exception {
  void *type, *value, *trace;
};

/* What the script did not catch is Ctrl-C. */
static struct exception take_interrupt(void) {
  struct exception raised = {NULL, NULL, NULL};
  void **interrupt = (void **)mt_interpreter_variable("PyExc_KeyboardInterrupt");
  api.fetch_error(&raised.type, &raised.value, &raised.trace);
  if (raised.type && now->raises && interrupt && api.matches(raised.type, *interrupt)) return raised;
  api.restore_error(raised.type, raised.value, raised.trace);
  api.clear_error();
  return (struct exception){NULL, NULL, NULL};
}

/* The script's functions refer to their namespace: a cycle that must be cleared. */
static void run_script(struct exception *raised) {
  void *globals = mt_pyscript_namespace();
  if (!globals) return;
  if (fill_namespace(globals)) mt_pyscript_run(globals, mt_referrers_script);
  *raised = take_interrupt();
  api.clear(globals);
  api.decref(globals);
}

static const char *find(void) {
  struct mt_quiet quiet;
  struct exception raised = {NULL, NULL, NULL};
  answered = false, now->size = 0, now->seq = 0, *failed_because = 0;
  if (!mt_pyquiet_enter(&quiet)) return "its interpreter is not the one that the process began with";
  run_script(&raised);
  mt_pyquiet_leave(&quiet);
  now->raised = raised.type != NULL;
  if (raised.type) return api.restore_error(raised.type, raised.value, raised.trace), "it was interrupted";
  if (*failed_because) return failed_because;
  if (!answered) return "the search failed in the process: this version of Python or PyTorch may be unknown";
  return now->size ? NULL : "PyTorch is not imported there";
}

static const char *refusal(void) {
  uint32_t state = mt_interpreter_state();
  if (state == MT_PY_OFF) return mt_interpreter.why;
  if (state < MT_PY_CHECKED || !mt_pyapi_find(MT_PYAPI_NAMES(API), &api) || !mt_pyfunctions_find() ||
      !mt_pypaths_find())
    return "no Python runs there";
  return api.initialized() && !mt_interpreter.finalizing() ? NULL : "its interpreter has ended";
}

const char *mt_referrers_find(struct mt_referrers *wanted, bool (*begin)(void)) {
  int error = errno;
  const char *why = refusal();
  if (why) return begin(), why;
  int state = api.ensure();
  if (begin()) {
    /* a collection would free garbage tensors here, and take the allocator's lock, which the requester may hold */
    bool collects = api.stop_collecting && api.collect_again && api.stop_collecting();
    now = wanted;
    why = find();
    if (collects) api.collect_again();
  }
  api.release(state);
  errno = error;
  return why;
}

bool mt_referrers_between(int (*call)(void *)) { return !refusal() && !api.add_pending(call, NULL); }

bool mt_referrers_disturbed(void) {
  struct mt_quiet quiet;
  if (refusal() || !mt_pyquiet_enter(&quiet)) return true;
  bool disturbed = mt_pyquiet_has_handlers();
  mt_pyquiet_leave(&quiet);
  return disturbed;
}

void mt_referrers_unlocked(void (*wait)(void)) {
  int error = errno;
  if (!refusal() && api.locked()) {
    void *state = api.unlock();
    wait();
    api.lock(state);
  }
  errno = error;
}

const char *mt_referrers_unsafe(void) {
  int error = errno;
  const char *why = refusal();
  if (!why && api.locked()) why = "the thread that asked for memory kept Python's interpreter to itself";
  errno = error;
  return why;
}
