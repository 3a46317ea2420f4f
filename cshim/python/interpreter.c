#define _GNU_SOURCE
#include "python/interpreter.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/saferead.h"
#include "python/pycode.h"
#include "python/pymemo.h"
#include "python/pystack.h"
#include "python/python.h"
#include "spool/dict.h"
#include "spool/module.h"
#include "unwind/splitranges.h"
#include "unwind/unwind.h"

struct mt_interpreter mt_interpreter;

static struct mt_code_range loop[1 + MT_SPLIT_RANGES]; /* the evaluation loop's code */
static unsigned loop_parts;
static char tests[2][96]; /* how the self-test went: writers take turns, tested is the last one that is whole */
static const char *tested;

static bool has_interpreter(const struct mt_loaded *object) {
  return mt_symbol_find(object, "PyGILState_GetThisThreadState") && mt_symbol_find(object, "_PyRuntime");
}

struct search {
  struct mt_loaded program, use_object;
  unsigned seen;
};

static int check_object(struct dl_phdr_info *info, size_t size, void *argument) {
  (void)size;
  struct search *search = argument;
  struct mt_loaded object = {info->dlpi_addr, NULL};
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
      object.dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
  if (!search->seen++) search->program = object;
  if (!object.dynamic || !has_interpreter(&object)) return 0;
  search->use_object = object;
  return 1;
}

/* A non-PIE program that is linked to the interpreter's library has copies of the variables that it names (copy
 * relocations), and these are the ones in use. */
uintptr_t mt_interpreter_variable(const char *name) {
  uintptr_t copy = mt_interpreter.program.dynamic ? mt_symbol_find(&mt_interpreter.program, name) : 0;
  return copy ? copy : mt_symbol_find(&mt_interpreter.object, name);
}

uintptr_t mt_interpreter_symbol(const char *name) { return mt_symbol_find(&mt_interpreter.object, name); }

static void write_info(const char *key, const char *text) { mt_dict_info(key, text, strlen(text)); }

static char *put_hex(char *at, uintptr_t n) {
  char digits[17];
  int i = sizeof digits;
  digits[--i] = 0;
  do digits[--i] = "0123456789abcdef"[n & 15], n >>= 4;
  while (n);
  return stpcpy(at, digits + i);
}

/* Writes all facts into the present spool. */
static void write_all_info(void) {
  struct mt_interpreter *py = &mt_interpreter;
  uint32_t state = mt_interpreter_state();
  if (py->version_text[0]) write_info("python.version", py->version_text);
  if (loop_parts) {
    char ranges[sizeof loop / sizeof *loop * 36], *at = ranges;
    for (unsigned i = 0; i < loop_parts; i++)
      at = put_hex(stpcpy(put_hex(i ? stpcpy(at, ",") : at, loop[i].start), "-"), loop[i].end);
    write_info("python.eval", ranges);
  }
  if (state >= MT_PY_CHECKED) write_info("python.stacks", "on");
  if (state == MT_PY_OFF) {
    char text[160] = "off: ";
    strncat(text, py->why, sizeof text - 6);
    write_info("python.stacks", text);
  }
  const char *test = __atomic_load_n(&tested, __ATOMIC_ACQUIRE);
  if (test) write_info("python.selftest", test);
}

/* "3.11.7 (main, ...": the number and its text. Before 3.11 the text is all there is. */
static void read_version(struct mt_interpreter *py) {
  const char *(*text)(void) = (const char *(*)(void))mt_interpreter_symbol("Py_GetVersion");
  const unsigned long *number = (const unsigned long *)mt_interpreter_variable("Py_Version");
  const char *all = text ? text() : "";
  size_t length = strcspn(all, " ");
  if (length >= sizeof py->version_text) length = sizeof py->version_text - 1;
  memcpy(py->version_text, all, length);
  py->version_text[length] = 0;
  if (number) {
    py->version = (uint32_t)*number;
    return;
  }
  char *rest;
  unsigned long major = strtoul(all, &rest, 10), minor = *rest == '.' ? strtoul(rest + 1, NULL, 10) : 0;
  py->version = (uint32_t)(major << 24 | (minor & 0xff) << 16);
}

static const char *bind_symbols(struct mt_interpreter *py) {
  py->thread_state = (void *(*)(void))mt_interpreter_symbol("PyGILState_GetThisThreadState");
  py->finalizing = (int (*)(void))mt_interpreter_symbol("Py_IsFinalizing");
  if (!py->finalizing) py->finalizing = (int (*)(void))mt_interpreter_symbol("_Py_IsFinalizing");
  py->code_type = mt_interpreter_variable("PyCode_Type");
  py->text_type = mt_interpreter_variable("PyUnicode_Type");
  py->bytes_type = mt_interpreter_variable("PyBytes_Type");
  read_version(py);
  if (!py->finalizing || !py->code_type || !py->text_type || !py->bytes_type)
    return "the interpreter does not export what is needed";
  if (!mt_safe_read_possible()) return "the system does not let the library check what it reads";
  return mt_pylayout_find(&py->layout, py->version, (const void *)mt_interpreter_variable("_PyRuntime"));
}

static void find_eval_loop(void) {
  uintptr_t entry = mt_interpreter_symbol("_PyEval_EvalFrameDefault");
  if (!entry || !mt_unwind_function(entry, &loop[0].start, &loop[0].end)) return;
  loop_parts = 1 + mt_split_ranges(loop[0].start, loop[0].end, loop + 1);
  for (unsigned i = 0; i < loop_parts; i++) mt_unwind_stop_at(loop[i].start, loop[i].end);
}

/* Once, since it is off for good. */
static void warn(void) {
  char text[96] = "no Python stacks (Python ";
  strncat(text, mt_interpreter.version_text[0] ? mt_interpreter.version_text : "of unknown version", 40);
  mt_log(MT_LOG_WARN, strcat(text, "): "), mt_interpreter.why, "; native stacks go on");
}

static void use_object(const struct mt_loaded *object, const struct mt_loaded *program) {
  uint32_t none = MT_PY_NONE;
  if (!__atomic_compare_exchange_n(&mt_interpreter.state, &none, MT_PY_BINDING, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_RELAXED))
    return;
  mt_interpreter.object = *object;
  mt_interpreter.program = *program;
  mt_interpreter.why = bind_symbols(&mt_interpreter);
  if (!mt_interpreter.why) find_eval_loop();
  __atomic_store_n(&mt_interpreter.state, mt_interpreter.why ? MT_PY_OFF : MT_PY_CHECKED, __ATOMIC_RELEASE);
  write_all_info();
  if (mt_interpreter.why) warn();
}

void mt_interpreter_disable(const char *why) {
  uint32_t state = mt_interpreter_state();
  do
    if (state < MT_PY_CHECKED) return;
  while (!__atomic_compare_exchange_n(&mt_interpreter.state, &state, MT_PY_BINDING, false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE));
  mt_interpreter.why = why;
  __atomic_store_n(&mt_interpreter.state, MT_PY_OFF, __ATOMIC_RELEASE);
  char text[160] = "off: ";
  strncat(text, why, sizeof text - 6);
  write_info("python.stacks", text);
  warn();
}

void mt_interpreter_set_test_result(const char *text) {
  char *copy = tests[tested == tests[0]];
  strncpy(copy, text, sizeof tests[0] - 1);
  __atomic_store_n(&tested, copy, __ATOMIC_RELEASE);
  write_info("python.selftest", copy);
}

static void search_loaded(void) {
  struct search search = {0};
  if (dl_iterate_phdr(check_object, &search)) use_object(&search.use_object, &search.program);
  else mt_interpreter.program = search.program;
}

void mt_python_start(void) {
  mt_pycode_start();
  mt_pystack_start();
  mt_memo_table_start(&mt_pymemos);
  if (mt_interpreter_state() != MT_PY_NONE) write_all_info();
  else if (!mt_interpreter.program.dynamic)
    search_loaded(); /* else an ancestor searched: a child may find the loader's lock taken, and objects loaded since
                        are discovered later */
}

void mt_python_module_loaded(const struct link_map *map) {
  struct mt_loaded object = {map->l_addr, map->l_ld};
  if (MT_LIKELY(mt_interpreter_state() != MT_PY_NONE) || !object.dynamic || !has_interpreter(&object)) return;
  use_object(&object, &mt_interpreter.program);
}

/* Where _dl_find_object is missing, this function's own module is not found either. */
void mt_python_check_unloaded(void) {
  if (mt_interpreter_state() < MT_PY_CHECKED || !mt_module_find((uintptr_t)mt_python_check_unloaded)) return;
  if (!mt_module_find((uintptr_t)mt_interpreter.thread_state)) mt_interpreter_disable("the interpreter was unloaded");
}
