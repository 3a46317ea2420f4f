/* The self-test of the Python walker: compares one stack with what the interpreter's own functions return for it, with
 * the lock held. The program must not notice: the test runs as a pending call (Py_AddPendingCall) between two of the
 * main thread's instructions, imports nothing, prints nothing, raises nothing and releases every reference. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "base/forklock.h"
#include "python/interpreter.h"
#include "python/pyapi.h"
#include "python/pycode.h"
#include "python/pyfinalize.h"
#include "python/python.h"
#include "spool/dict.h"
#include "spool/region.h"

/* A frame that is just being set up may be shown by one side and not by the other: only what fails again and again is
 * wrong. Moments in which there is nothing to compare do not count, up to a limit. */
#define MT_PY_FAILURES 3u
#define MT_PY_ATTEMPTS 20u

/* A comparison of this many frames is conclusive. Fewer pass, too, but the test is repeated. */
#define MT_PY_ENOUGH 4u

/* The interpreter's functions; objects are void *. */
#define API(F)                                                              \
  F(int, initialized, (void), "Py_IsInitialized")                           \
  F(int, add_pending, (int (*)(void *), void *), "Py_AddPendingCall")       \
  F(void *, thread, (void), "PyThreadState_Get")                            \
  F(void *, frame, (void), "PyEval_GetFrame") /* borrowed */                \
  F(void *, frame_back, (void *), "?PyFrame_GetBack") /* NULL in 3.8 */     \
  F(void *, frame_code, (void *), "?PyFrame_GetCode") /* NULL in 3.8 */     \
  F(void *, attribute, (void *, const char *), "PyObject_GetAttrString")    \
  F(intptr_t, text_length, (void *), "PyUnicode_GetLength")                 \
  F(uint32_t, text_at, (void *, intptr_t), "PyUnicode_ReadChar")            \
  F(intptr_t, bytes_size, (void *), "PyBytes_Size")                         \
  F(char *, bytes_data, (void *), "PyBytes_AsString")                       \
  F(long, number, (void *), "PyLong_AsLong")                                \
  F(void, fetch_error, (void **, void **, void **), "PyErr_Fetch")          \
  F(void, restore_error, (void *, void *, void *), "PyErr_Restore")         \
  F(void, clear_error, (void), "PyErr_Clear")                               \
  F(void, incref, (void *), "Py_IncRef")                                    \
  F(void, decref, (void *), "Py_DecRef")

static struct {
  MT_PYAPI_PLACES(API)
} api;

static bool find_api(void) {
  return mt_pyapi_find(MT_PYAPI_NAMES(API), &api) &&
         ((api.frame_back && api.frame_code) || mt_interpreter.layout.minor < 9);
}

static void *back_of(void *frame) {
  if (api.frame_back) return api.frame_back(frame);
  void *back = api.attribute(frame, "f_back");
  if ((uintptr_t)back != mt_interpreter_variable("_Py_NoneStruct")) return back;
  api.decref(back);
  return NULL;
}

/* In 3.8 the only other way is the attribute f_code, which raises an audit event in the program. */
static void *code_of(void *frame) {
  if (api.frame_code) return api.frame_code(frame);
  void *code = *(void **)((char *)frame + mt_interpreter.layout.frame_code);
  api.incref(code);
  return code;
}

static bool same_number(void *object, const char *attribute, int64_t wanted) {
  void *number = api.attribute(object, attribute);
  if (!number) return false;
  int64_t have = api.number(number);
  api.decref(number);
  return have == wanted || (have < 0 && !wanted);
}

static uint32_t character(const char *text, unsigned width, uint32_t index) {
  uint8_t one;
  uint16_t two;
  uint32_t four;
  switch (width) {
    case 1: return memcpy(&one, text + index, 1), one;
    case 2: return memcpy(&two, text + 2ull * index, 2), two;
    default: return memcpy(&four, text + 4ull * index, 4), four;
  }
}

/* Texts that were cut for their length are compared as far as they go. */
static bool same_text(void *code, const char *attribute, const char *text, uint32_t bytes, unsigned width) {
  void *object = api.attribute(code, attribute);
  if (!object) return false;
  intptr_t length = api.text_length(object), have = bytes / width;
  bool same = length == have || (length > have && bytes + width > 4096);
  for (intptr_t i = 0; same && i < have; i++) same = api.text_at(object, i) == character(text, width, (uint32_t)i);
  api.decref(object);
  return same;
}

static bool same_lines(void *code, const char *data, uint32_t bytes) {
  void *object = api.attribute(code, mt_interpreter.layout.lines == MT_LINES_LNOTAB ? "co_lnotab" : "co_linetable");
  if (!object) return false;
  bool same = api.bytes_size(object) == (intptr_t)bytes && !memcmp(api.bytes_data(object), data, bytes);
  api.decref(object);
  return same;
}

/* Compares a code object with its dictionary entry: what differs, or NULL. */
static const char *compare_code(void *code, uint32_t id) {
  const char *at = mt_data() + mt_index()[id - 1].offset;
  struct mt_code head;
  memcpy(&head, at, sizeof head);
  const char *name = at + sizeof head, *qualname = name + head.name_bytes, *file = qualname + head.qualname_bytes,
             *lines = file + head.file_bytes;
  if (!same_text(code, "co_name", name, head.name_bytes, head.name_width)) return "a function's name";
  if (!same_text(code, "co_filename", file, head.file_bytes, head.file_width)) return "a file's name";
  if (mt_interpreter.layout.code_qualname &&
      !same_text(code, "co_qualname", qualname, head.qualname_bytes, head.qualname_width))
    return "a qualified name";
  if (!same_number(code, "co_firstlineno", head.first_line)) return "a first line";
  if (head.table != MT_LINES_NONE && !same_lines(code, lines, head.table_bytes)) return "a line table";
  return NULL;
}

enum { NOTHING_TO_COMPARE = -1 };

/* How many frames were compared; *differs is what did not fit. */
static int compare_frame(void *frame, const struct mt_pyraw *raw, const char **differs) {
  uint64_t address = raw->code & ~1ull;
  void *code = code_of(frame);
  if (!code) return NOTHING_TO_COMPARE;
  int compared = 1;
  bool transient, module_call;
  uint32_t id;
  if ((uintptr_t)code != address) *differs = "a frame";
  else if (!same_number(frame, "f_lasti", mt_pycode_offset(address, raw->position))) *differs = "a frame's instruction";
  else if (!(id = mt_pycode_intern(address, raw->identity, 0, &transient, &module_call))) compared = NOTHING_TO_COMPARE;
  else *differs = compare_code(code, id);
  api.decref(code);
  return compared;
}

static int compare_stack(const char **differs) {
  static struct mt_pyraw frames[MT_PYTHON_MAX]; /* with the interpreter's lock held */
  enum mt_stack_end end;
  if (api.thread() != mt_interpreter.thread_state()) return NOTHING_TO_COMPARE; /* inside a sub-interpreter */
  void *frame = api.frame();
  unsigned count = mt_python_walk(frames, MT_PYTHON_MAX, &end), compared = 0;
  if (!frame || mt_interpreter_state() < MT_PY_CHECKED) return NOTHING_TO_COMPARE;
  api.incref(frame);
  for (; frame && compared < count && !*differs; compared++) {
    if (compare_frame(frame, &frames[compared], differs) < 0) break;
    void *back = back_of(frame);
    api.decref(frame);
    frame = back;
  }
  bool open = frame != NULL;
  if (open) api.decref(frame);
  if (*differs || (compared == count && open == (end == MT_STACK_DEPTH))) return (int)compared;
  if (compared == count || !open) return *differs = "the number of frames", (int)compared;
  return NOTHING_TO_COMPARE;
}

static uint32_t requested, attempts, failures, most, finished;

/* notified: a listener for the interpreter's finalization is registered. */
static void passed(unsigned frames, bool notified) {
  char text[64], digits[12];
  mt_pyfinalize_test_passed();
  if (frames >= MT_PY_ENOUGH && notified) __atomic_store_n(&finished, 1, __ATOMIC_RELAXED);
  if (frames <= most) return;
  most = frames;
  int i = sizeof digits;
  digits[--i] = 0;
  do digits[--i] = (char)('0' + frames % 10), frames /= 10;
  while (frames);
  strcpy(stpcpy(stpcpy(text, "passed: "), digits + i), " frames");
  mt_interpreter_set_test_result(text);
}

static void failed(const char *what) {
  char text[96];
  stpcpy(stpcpy(text, "failed: "), what);
  mt_interpreter_set_test_result(text);
  __atomic_store_n(&finished, 1, __ATOMIC_RELAXED);
  mt_interpreter_disable("the walker and the interpreter do not tell the same stack");
}

/* False in a forked child, which inherits its parent's pending calls. */
static bool recording(void) { return __atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_ACQUIRE) != 0; }

/* A pending call: on the main thread, with the lock, between two instructions. */
static int run_test(void *unused) {
  (void)unused;
  const char *differs = NULL;
  int error = errno;
  if (mt_interpreter_state() >= MT_PY_CHECKED && recording() && !mt_interpreter.finalizing()) {
    void *type, *value, *trace;
    api.fetch_error(&type, &value, &trace);
    int frames = compare_stack(&differs);
    api.clear_error();
    bool well = !differs && frames > 0, notified = well && mt_pyfinalize_register();
    api.clear_error();
    api.restore_error(type, value, trace);
    if (differs && ++failures >= MT_PY_FAILURES) failed(differs);
    if (well) passed((unsigned)frames, notified);
  }
  errno = error;
  __atomic_store_n(&requested, 0, __ATOMIC_RELEASE);
  return 0;
}

static void request_test(void) {
  if (!attempts++ && (!find_api() || !mt_forklock_init())) {
    finished = 1;
    return mt_interpreter_set_test_result("not possible: the interpreter or the system lacks what it takes");
  }
  if (attempts > MT_PY_ATTEMPTS) {
    finished = 1;
    if (!most) mt_interpreter_set_test_result("not possible: the main thread was never met in Python code");
    return;
  }
  if (attempts == 1) mt_pyfinalize_prepare();
  mt_forklock_acquire(); /* a child forked meanwhile would find the lock of the interpreter's list taken */
  if (api.initialized() && !mt_interpreter.finalizing()) {
    __atomic_store_n(&requested, 1, __ATOMIC_RELEASE);
    if (api.add_pending(run_test, NULL)) __atomic_store_n(&requested, 0, __ATOMIC_RELEASE);
  } else
    attempts--;
  mt_forklock_release();
  if (attempts == 1) mt_pyfinalize_prepare_barrier();
}

/* Another interpreter may follow a finalized one. */
static void reset(void) {
  attempts = failures = most = 0;
  __atomic_store_n(&finished, 0, __ATOMIC_RELAXED);
}

void mt_python_poll(void) {
  if (mt_pyfinalize_ended()) reset();
  if (mt_interpreter_state() >= MT_PY_CHECKED && !__atomic_load_n(&requested, __ATOMIC_ACQUIRE) &&
      !__atomic_load_n(&finished, __ATOMIC_RELAXED))
    request_test();
}
