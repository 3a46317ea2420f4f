/* A script runs once, on the main thread, with the interpreter's lock: as a pending call (Py_AddPendingCall) between
 * two instructions, or at the interpreter's end if that comes first. It registers hooks of its own with the framework,
 * and leaves a function here that reports all names again: at the end, when memory ran out, when the script scheduled
 * it.
 *
 * Nothing of it may be visible to the program: it raises nothing, prints nothing and imports nothing that the framework
 * has not imported.
 *
 * A forked child inherits running scripts, and they go on there for its own recording; it has a polling thread only if
 * it is the first of its ancestors that records. It inherits its parent's pending calls, too: they do nothing unless it
 * records by then. */
#define _GNU_SOURCE
#include "adapters/adapter.h"

#include <errno.h>
#include <link.h>
#include <string.h>

#include "adapters/backward.h"
#include "adapters/pyfunction.h"
#include "adapters/pyquiet.h"
#include "adapters/pyscript.h"
#include "allocator/vtable.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/forklock.h"
#include "base/sys.h"
#include "base/wake.h"
#include "python/interpreter.h"
#include "python/pyapi.h"
#include "python/pyfinalize.h"
#include "spool/dict.h"
#include "spool/region.h"

enum state { IDLE, PENDING, ON, OFF };


#define MT_PREPARE_WAITS 40u /* of half a millisecond, once in a process */

/* A program that searches for the largest batch runs out of memory repeatedly. */
#define MT_OOM_REPORTS 10u

uint32_t mt_adapters_detected;

static struct adapter {
  uint32_t state;   /* enum state */
  uint32_t pending;   /* for the report, which waits to be called */
  uint32_t failures; /* things that went wrong */
  uint32_t written;   /* of these, in the dictionary of the recording that noted_in is */
  uint64_t written_in;
  uint64_t due;     /* monotonic, of the next report; 0 none */
  void *report;     /* the script's function, a reference of the library's; accessed with the interpreter's lock */
} adapters[MT_FRAMEWORKS];

static uint32_t oom_pending, oom_reports;


#define API(F)                                                                  \
  F(int, initialized, (void), "Py_IsInitialized")                               \
  F(int, add_pending, (int (*)(void *), void *), "Py_AddPendingCall")           \
  F(void *, get, (void *, const char *), "PyDict_GetItemString") /* borrowed */ \
  F(void *, tuple, (intptr_t), "PyTuple_New")                                   \
  F(void *, error, (void), "PyErr_Occurred") /* borrowed */                     \
  F(void, incref, (void *), "Py_IncRef")                                        \
  F(void, decref, (void *), "Py_DecRef")

static struct {
  MT_PYAPI_PLACES(API)
} api;

static char *key_of(char *key, enum mt_framework framework, const char *more) {
  return stpcpy(stpcpy(stpcpy(key, "adapter."), mt_adapter_scripts[framework].name), more), key;
}

static void write_state(enum mt_framework framework, const char *what) {
  char key[64];
  mt_dict_info(key_of(key, framework, ""), what, strlen(what));
}

static void write_failures(enum mt_framework framework) {
  struct adapter *a = &adapters[framework];
  char key[64], digits[12];
  uint32_t count = __atomic_load_n(&a->failures, __ATOMIC_RELAXED);
  uint64_t epoch = __atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_ACQUIRE);
  if (!count || !epoch || (count == a->written && epoch == a->written_in)) return;
  a->written = count, a->written_in = epoch;
  char *at = digits + sizeof digits;
  for (uint32_t n = count; n; n /= 10) *--at = (char)('0' + n % 10);
  mt_dict_info(key_of(key, framework, ".trouble"), at, (size_t)(digits + sizeof digits - at));
}

/* The first one at once, since a process may be killed. */
uint32_t mt_adapter_count_failure(enum mt_framework framework) {
  uint32_t count = __atomic_add_fetch(&adapters[framework].failures, 1, __ATOMIC_RELAXED);
  if (count == 1) write_failures(framework);
  return count;
}

void mt_adapter_schedule(enum mt_framework framework, uint32_t milliseconds) {
  __atomic_store_n(&adapters[framework].due, milliseconds ? mt_clock_monotonic() + milliseconds * 1000000ull : 0,
                   __ATOMIC_RELEASE);
}

/* False in a forked child, which inherits its parent's pending calls. */
static bool recording(void) {
  return __atomic_load_n(&__atomic_load_n(&mt_epoch_page, __ATOMIC_ACQUIRE)->epoch, __ATOMIC_ACQUIRE) != 0;
}

static bool usable(void) { return mt_interpreter_state() >= MT_PY_CHECKED && !mt_interpreter.finalizing(); }

enum readiness { UNKNOWN, FINDING, READY, NOT_POSSIBLE };

/* Finds the interpreter's functions, once; another thread that comes meanwhile gets FINDING. Before the fork lock is
 * first acquired. */
static enum readiness prepare(void) {
  static uint32_t found;
  uint32_t before = UNKNOWN;
  if (!__atomic_compare_exchange_n(&found, &before, FINDING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return before;
  before =
      mt_pyapi_find(MT_PYAPI_NAMES(API), &api) && mt_pyfunctions_find() && mt_forklock_init() ? READY : NOT_POSSIBLE;
  __atomic_store_n(&found, before, __ATOMIC_RELEASE);
  return before;
}

/* At the end of a program. Bounded: in a child that was forked meanwhile no thread finishes the search. */
static bool wait_until_ready(void) {
  enum readiness now = prepare();
  for (unsigned tries = 0; now == FINDING && tries < 1000; tries++) mt_sys_yield(), now = prepare();
  return now == READY;
}

static bool run_script(enum mt_framework framework) {
  void *globals = mt_pyscript_namespace(), *report = NULL;
  if (!globals) return false;
  if (mt_pyfunctions_add(globals, framework) && mt_pyscript_run(globals, mt_adapter_scripts[framework].text))
    report = api.get(globals, "report");
  if (report) {
    api.incref(report);
    adapters[framework].report = report;
  }
  api.decref(globals);
  return report && !api.error();
}

/* Without a notification of the interpreter's end the references to its objects could not be dropped in time. */
static enum state begin(enum mt_framework framework) {
  mt_pyfinalize_register();
  if (!mt_pyfinalize_registered()) return write_state(framework, "off: the interpreter does not tell of its end"), OFF;
  bool on = run_script(framework);
  write_state(framework, on ? "on" : "off: the script failed");
  return on ? ON : OFF;
}

static void run_report(enum mt_framework framework) {
  bool failed = false;
  void *report = adapters[framework].report, *arguments = report ? api.tuple(0) : NULL;
  void *result = arguments ? mt_pyquiet_call(report, arguments, NULL, &failed) : NULL;
  if (failed) mt_adapter_count_failure(framework);
  if (result) api.decref(result);
  if (arguments) api.decref(arguments);
  write_failures(framework);
}

/* Pending calls. */
static int call_script(void *which) {
  enum mt_framework framework = (enum mt_framework)(uintptr_t)which;
  struct adapter *a = &adapters[framework];
  struct mt_quiet quiet;
  enum state state = IDLE; /* to be requested again */
  int error = errno;
  if (__atomic_load_n(&a->state, __ATOMIC_ACQUIRE) != PENDING) return 0; /* requested in an interpreter that ended */
  if (recording() && usable() && mt_pyquiet_enter(&quiet)) {
    state = begin(framework);
    mt_pyquiet_leave(&quiet);
  }
  __atomic_store_n(&a->state, state, __ATOMIC_RELEASE);
  errno = error;
  return 0;
}

static int call_report(void *which) {
  enum mt_framework framework = (enum mt_framework)(uintptr_t)which;
  struct mt_quiet quiet;
  int error = errno;
  if (recording() && usable() && mt_pyquiet_enter(&quiet)) {
    run_report(framework);
    mt_pyquiet_leave(&quiet);
  }
  __atomic_store_n(&adapters[framework].pending, 0, __ATOMIC_RELEASE);
  errno = error;
  return 0;
}

void mt_adapter_module_loaded(const struct link_map *map) {
  const char *slash = strrchr(map->l_name, '/'), *name = slash ? slash + 1 : map->l_name;
  if (!strcmp(name, "libmxnet.so")) mt_adapter_in_use(MT_MXNET);
  if (!strcmp(name, "xla_cuda_plugin.so")) mt_adapter_in_use(MT_JAX);
}

/* Requests a pending call, from one thread of several: the state changes before the request, since the call may come at
 * once. With the fork lock held: a child forked meanwhile would find the lock of the interpreter's list taken. */
static void request_call(enum mt_framework framework, uint32_t *word, uint32_t before, uint32_t pending,
                         int (*call)(void *)) {
  uint32_t expected = before;
  if (api.initialized() && !mt_interpreter.finalizing() &&
      __atomic_compare_exchange_n(word, &expected, pending, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
      api.add_pending(call, (void *)(uintptr_t)framework))
    __atomic_store_n(word, before, __ATOMIC_RELEASE); /* the interpreter's list is full */
}

static bool is_due(struct adapter *a, bool oom) {
  uint64_t due = __atomic_load_n(&a->due, __ATOMIC_ACQUIRE);
  bool now = due && mt_clock_monotonic() >= due;
  if (now) __atomic_compare_exchange_n(&a->due, &due, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  return now || oom;
}

/* With the fork lock held, and everything prepared. */
static void poll_framework(enum mt_framework framework, bool oom) {
  struct adapter *a = &adapters[framework];
  switch ((enum state)__atomic_load_n(&a->state, __ATOMIC_ACQUIRE)) {
    case IDLE: return request_call(framework, &a->state, IDLE, PENDING, call_script);
    case ON:
      if (!__atomic_load_n(&a->pending, __ATOMIC_ACQUIRE) && is_due(a, oom))
        request_call(framework, &a->pending, 0, 1, call_report);
      return;
    case PENDING:
    case OFF: return;
  }
}

/* All that are on. With the fork lock held. */
static void poll_after_oom(void) {
  uint32_t wanted = __atomic_load_n(&mt_adapters_detected, __ATOMIC_ACQUIRE) & mt_config.adapters;
  if (!__atomic_exchange_n(&oom_pending, 0, __ATOMIC_ACQ_REL)) return;
  __atomic_add_fetch(&oom_reports, 1, __ATOMIC_RELAXED);
  for (unsigned i = 0; i < MT_FRAMEWORKS; i++)
    if (wanted & 1u << i) poll_framework((enum mt_framework)i, true);
}

/* Requests the report at once: the program may catch the error and create other objects, at the addresses of those that
 * are to be named, before the polling thread comes. */
void mt_adapter_out_of_memory(void) {
  if (!(__atomic_load_n(&mt_adapters_detected, __ATOMIC_RELAXED) & mt_config.adapters) ||
      __atomic_load_n(&oom_reports, __ATOMIC_RELAXED) >= MT_OOM_REPORTS)
    return;
  if (__atomic_exchange_n(&oom_pending, 1, __ATOMIC_ACQ_REL)) return;
  int error = errno;
  if (recording() && mt_interpreter_state() >= MT_PY_CHECKED && prepare() == READY && mt_forklock_try()) {
    poll_after_oom();
    mt_forklock_release();
  }
  errno = error;
  mt_wake_poll();
}

static void disable(enum mt_framework framework) {
  uint32_t idle = IDLE;
  if (__atomic_compare_exchange_n(&adapters[framework].state, &idle, OFF, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    write_state(framework, "off: the interpreter or the system lacks what it takes");
}

/* The polling thread began with the recording, long before a framework has a block. A busy machine may not have run it
 * yet, and a short program would end without names. */
static bool wait_for_interpreter(void) {
  for (unsigned waits = 0; waits < MT_PREPARE_WAITS && !mt_pyfinalize_prepared() && mt_draining(); waits++)
    mt_sys_sleep(500000);
  return mt_pyfinalize_prepared();
}

/* The interpreter is mostly known by now, and the first optimizer step is near: the polling thread may come only when
 * the Go runtime is up. */
void mt_adapter_detected(enum mt_framework framework) {
  if (__atomic_fetch_or(&mt_adapters_detected, 1u << framework, __ATOMIC_ACQ_REL) & 1u << framework ||
      !(mt_config.adapters & 1u << framework))
    return;
  int error = errno;
  if (recording() && mt_interpreter_state() >= MT_PY_CHECKED && wait_for_interpreter() && prepare() == READY &&
      mt_forklock_try()) {
    poll_framework(framework, false);
    mt_forklock_release();
  }
  errno = error;
  mt_wake_poll();
}

void mt_adapter_poll(void) {
  mt_allocator_poll();
  uint32_t wanted = __atomic_load_n(&mt_adapters_detected, __ATOMIC_ACQUIRE) & mt_config.adapters;
  if (!wanted || mt_interpreter_state() < MT_PY_CHECKED) return;
  mt_backward_poll();
  enum readiness now = prepare();
  if (now == FINDING) return;
  bool oom = __atomic_exchange_n(&oom_pending, 0, __ATOMIC_ACQ_REL);
  if (oom) __atomic_add_fetch(&oom_reports, 1, __ATOMIC_RELAXED);
  for (unsigned i = 0; i < MT_FRAMEWORKS; i++) {
    if (!(wanted & 1u << i)) continue;
    if (now == NOT_POSSIBLE) {
      disable((enum mt_framework)i);
      continue;
    }
    mt_forklock_acquire();
    poll_framework((enum mt_framework)i, oom);
    mt_forklock_release();
  }
}

/* A program may end before the polling thread requested its script. A pending call that comes later finds another
 * state, and does nothing. */
static bool never_ran(enum mt_framework framework) {
  uint32_t wanted = __atomic_load_n(&mt_adapters_detected, __ATOMIC_ACQUIRE) & mt_config.adapters,
           state = __atomic_load_n(&adapters[framework].state, __ATOMIC_ACQUIRE);
  return wanted & 1u << framework && (state == IDLE || state == PENDING);
}

void mt_adapter_report_all(void) {
  struct mt_quiet quiet;
  for (unsigned i = 0; i < MT_FRAMEWORKS; i++) {
    struct adapter *a = &adapters[i];
    bool late = recording() && usable() && never_ran((enum mt_framework)i) && wait_until_ready();
    if (!(a->report || late) || !recording() || !usable() || !mt_pyquiet_enter(&quiet)) continue;
    if (late) __atomic_store_n(&a->state, begin((enum mt_framework)i), __ATOMIC_RELEASE);
    if (a->report) run_report((enum mt_framework)i);
    mt_pyquiet_leave(&quiet);
  }
}

void mt_adapter_reset(void) {
  for (unsigned i = 0; i < MT_FRAMEWORKS; i++) {
    struct adapter *a = &adapters[i];
    a->report = NULL;
    __atomic_store_n(&a->due, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&a->pending, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&a->state, IDLE, __ATOMIC_RELEASE);
  }
}
