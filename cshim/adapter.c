/* A script runs once, as a pending call: on the main thread, with the interpreter's lock, between two instructions. It leaves functions of its own where the framework calls them.
 * Nothing of it may be visible to the program: it raises nothing, prints nothing and imports nothing that the framework has not imported. */
#define _GNU_SOURCE
#include "adapter.h"

#include <errno.h>
#include <link.h>
#include <string.h>

#include "boot.h"
#include "clock.h"
#include "config.h"
#include "dict.h"
#include "gate.h"
#include "interpreter.h"
#include "pyfunction.h"
#include "ring.h"

enum state { IDLE, ASKED, ON, OFF };

#define MT_PY_FILE_INPUT 257

uint32_t mt_adapters_met;

static uint32_t states[MT_FRAMEWORKS]; /* enum state */
static void *reports[MT_FRAMEWORKS];   /* the scripts' functions that say everything, ours to give back; read and written with the interpreter's lock */

static struct {
  int (*initialized)(void);
  int (*add_pending)(int (*)(void *), void *);
  void *(*builtins)(void); /* borrowed */
  void *(*compile)(const char *, const char *, int);
  void *(*run)(void *, void *, void *);
  void *(*dict)(void);
  int (*set)(void *, const char *, void *);
  void *(*get)(void *, const char *); /* borrowed */
  void *(*text)(const char *);
  void *(*call)(void *, ...);
  void *(*error)(void); /* borrowed */
  void (*fetch_error)(void **, void **, void **);
  void (*restore_error)(void *, void *, void *);
  void (*clear_error)(void);
  void (*give)(void *);
} api;

static bool find_api(void) {
  static const struct mt_pysymbol symbols[] = {
      {"Py_IsInitialized", &api.initialized}, {"Py_AddPendingCall", &api.add_pending}, {"PyEval_GetBuiltins", &api.builtins}, {"Py_CompileString", &api.compile},
      {"PyEval_EvalCode", &api.run},          {"PyDict_New", &api.dict},               {"PyDict_SetItemString", &api.set},    {"PyDict_GetItemString", &api.get},
      {"PyUnicode_FromString", &api.text},    {"PyObject_CallFunctionObjArgs", &api.call}, {"PyErr_Occurred", &api.error},    {"PyErr_Fetch", &api.fetch_error},
      {"PyErr_Restore", &api.restore_error},  {"PyErr_Clear", &api.clear_error},       {"Py_DecRef", &api.give},
  };
  return mt_pysymbols_find(symbols, sizeof symbols / sizeof *symbols) && mt_pyfunctions_find();
}

static void note(enum mt_framework framework, const char *what) {
  char key[32] = "adapter.";
  strncat(key, mt_adapter_scripts[framework].name, sizeof key - 9);
  mt_dict_info(key, what, strlen(what));
}

/* Not so in a forked child, which inherits calls that its parent asked for. */
static bool recording(void) { return __atomic_load_n(&mt_live->epoch, __ATOMIC_ACQUIRE) != 0; }

/* A namespace for the script, which holds the builtins and our functions. New reference, or NULL. */
static void *make_globals(void) {
  void *globals = api.dict(), *name = api.text("memtrace"), *builtins = api.builtins();
  bool made = globals && name && builtins && !api.set(globals, "__builtins__", builtins) && !api.set(globals, "__name__", name) && mt_pyfunctions_add(globals);
  if (name) api.give(name);
  if (made || !globals) return globals;
  api.give(globals);
  return NULL;
}

static bool run_script(enum mt_framework framework) {
  void *globals = make_globals(), *code = globals ? api.compile(mt_adapter_scripts[framework].text, "<memtrace>", MT_PY_FILE_INPUT) : NULL;
  void *result = code ? api.run(code, globals, globals) : NULL;
  void *report = result ? api.get(globals, "report") : NULL;
  if (report) {
    mt_pyfunctions_keep(report);
    reports[framework] = report;
  }
  if (result) api.give(result);
  if (code) api.give(code);
  if (globals) api.give(globals);
  return report && !api.error();
}

static int run(void *which) {
  enum mt_framework framework = (enum mt_framework)(uintptr_t)which;
  uint32_t asked = ASKED;
  int error = errno;
  if (recording() && mt_interpreter_state() >= MT_PY_CHECKED && !mt_interpreter.finalizing()) {
    void *type, *value, *trace;
    api.fetch_error(&type, &value, &trace);
    bool on = run_script(framework);
    api.clear_error();
    api.restore_error(type, value, trace);
    note(framework, on ? "on" : "off: the script failed");
    __atomic_compare_exchange_n(&states[framework], &asked, on ? ON : OFF, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  } else
    __atomic_compare_exchange_n(&states[framework], &asked, IDLE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  errno = error;
  return 0;
}

void mt_adapter_meet(enum mt_framework framework) {
  if (__atomic_fetch_or(&mt_adapters_met, 1u << framework, __ATOMIC_ACQ_REL) & 1u << framework) return;
  if (mt_config.adapters & 1u << framework) mt_boot_turn();
}

void mt_adapter_look(const struct link_map *map) {
  const char *slash = strrchr(map->l_name, '/');
  if (!strcmp(slash ? slash + 1 : map->l_name, "libmxnet.so")) mt_adapter_seen(MT_MXNET);
}

static bool ready(void) {
  static int found; /* 1 yes, -1 no */
  if (!found) found = find_api() && mt_gate_open() ? 1 : -1;
  return found > 0;
}

void mt_adapter_turn(void) {
  uint32_t wanted = __atomic_load_n(&mt_adapters_met, __ATOMIC_ACQUIRE) & mt_config.adapters;
  if (!wanted || mt_interpreter_state() < MT_PY_CHECKED) return;
  for (unsigned i = 0; i < MT_FRAMEWORKS; i++) {
    if (!(wanted & 1u << i) || __atomic_load_n(&states[i], __ATOMIC_ACQUIRE) != IDLE) continue;
    if (!ready()) {
      __atomic_store_n(&states[i], OFF, __ATOMIC_RELEASE);
      note((enum mt_framework)i, "off: the interpreter or the system lacks what it takes");
      continue;
    }
    mt_gate_enter(); /* a child forked meanwhile would find the lock of the interpreter's list taken */
    if (api.initialized() && !mt_interpreter.finalizing()) {
      __atomic_store_n(&states[i], ASKED, __ATOMIC_RELEASE);
      if (api.add_pending(run, (void *)(uintptr_t)i)) __atomic_store_n(&states[i], IDLE, __ATOMIC_RELEASE);
    }
    mt_gate_leave();
  }
}

void mt_adapter_report(void) {
  for (unsigned i = 0; i < MT_FRAMEWORKS; i++) {
    void *result = reports[i] && recording() ? api.call(reports[i], NULL) : NULL;
    if (result) api.give(result);
  }
}
