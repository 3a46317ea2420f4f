#define _GNU_SOURCE
/* What the interpreter itself says of a thread's stack.
 *
 * A thread that holds the interpreter's lock is asked by the C interface, which neither runs bytecode nor lets the lock
 * go. One that does not must not wait for it: another thread may hold it and wait for what this one holds, such as
 * torch's allocator. It asks a thread of ours and waits for a limited time. Its frames stand still meanwhile. */
#include "oracle.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATIENCE_S 3
#define FILE_INPUT 257 /* Py_file_input */

typedef void object;

static struct {
  int (*ensure)(void);
  void (*release)(int);
  int (*check)(void);
  void *(*own)(void);
  object *(*top_frame)(void);
  object *(*attribute)(object *, const char *);
  object *(*call_method)(object *, const char *, const char *, ...);
  object *(*call)(object *, const char *, ...);
  object *(*import)(const char *);
  object *(*run)(const char *, int, object *, object *);
  object *(*new_dict)(void);
  object *(*item)(object *, const char *);
  const char *(*utf8)(object *);
  long (*integer)(object *);
  int (*truth)(object *);
  void (*incref)(object *);
  void (*decref)(object *);
  void (*fetch)(object **, object **, object **);
  void (*restore)(object *, object *, object *);
  void (*clear)(void);
  object *(*builtins)(void);
  int (*set)(object *, const char *, object *);
} py;

static bool learn(void *where, const char *name) {
  void *found = dlsym(RTLD_DEFAULT, name);
  memcpy(where, &found, sizeof found);
  return found != NULL;
}

static bool find_python(void) {
  return learn(&py.own, "PyGILState_GetThisThreadState") && learn(&py.ensure, "PyGILState_Ensure") &&
         learn(&py.release, "PyGILState_Release") && learn(&py.check, "PyGILState_Check") &&
         learn(&py.top_frame, "PyEval_GetFrame") && learn(&py.attribute, "PyObject_GetAttrString") &&
         learn(&py.call_method, "PyObject_CallMethod") && learn(&py.call, "PyObject_CallFunction") &&
         learn(&py.import, "PyImport_ImportModule") && learn(&py.run, "PyRun_String") &&
         learn(&py.new_dict, "PyDict_New") && learn(&py.item, "PyDict_GetItemString") &&
         learn(&py.utf8, "PyUnicode_AsUTF8") && learn(&py.integer, "PyLong_AsLong") &&
         learn(&py.truth, "PyObject_IsTrue") && learn(&py.incref, "Py_IncRef") && learn(&py.decref, "Py_DecRef") &&
         learn(&py.fetch, "PyErr_Fetch") && learn(&py.restore, "PyErr_Restore") && learn(&py.clear, "PyErr_Clear") &&
         learn(&py.builtins, "PyEval_GetBuiltins") && learn(&py.set, "PyDict_SetItemString");
}

/* The interpreter is there and not about to end. */
static bool alive(void) {
  static int (*initialized)(void), (*finalizing)(void);
  if (!initialized && !learn(&initialized, "Py_IsInitialized")) return false;
  if (!finalizing && !learn(&finalizing, "Py_IsFinalizing") && !learn(&finalizing, "_Py_IsFinalizing")) return false;
  return initialized() && !finalizing();
}

static bool have_python(void) {
  static int state; /* 0 not yet, 1 being filled, 2 found */
  int now = __atomic_load_n(&state, __ATOMIC_ACQUIRE), none = 0;
  if (now == 2) return true;
  if (now || !dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState") ||
      !__atomic_compare_exchange_n(&state, &none, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return false;
  bool found = find_python();
  if (!found) fprintf(stderr, "oracle: this interpreter lacks a function of its C interface\n");
  __atomic_store_n(&state, found ? 2 : 1, __ATOMIC_RELEASE);
  return found;
}

bool oracle_python_loop(uintptr_t *start, uintptr_t *end) {
  void *loop = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
  Dl_info info;
  const ElfW(Sym) *symbol = NULL;
  if (!loop || !dladdr1(loop, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol) return false;
  *start = (uintptr_t)loop;
  *end = *start + symbol->st_size;
  return true;
}

/* Adds obj.name as text; false if there is none. */
static bool add_text(struct oracle_text *text, object *obj, const char *name) {
  object *value = py.attribute(obj, name);
  const char *utf8 = value ? py.utf8(value) : NULL;
  if (utf8) oracle_add(text, "%s", utf8);
  if (value) py.decref(value);
  if (!utf8) py.clear();
  return utf8 != NULL;
}

/* Adds a frame and returns the next outer one, NULL at the end. Takes the reference to the frame. */
static object *add_frame(struct oracle_text *text, object *frame, bool first, bool *failed) {
  object *line = py.attribute(frame, "f_lineno"), *code = py.attribute(frame, "f_code"),
         *back = py.attribute(frame, "f_back");
  if (!line || !code || !back) {
    *failed = true;
    py.clear();
  } else {
    oracle_add(text, "%s%ld\x1f", first ? "" : "\x1e", py.integer(line));
    *failed |= !add_text(text, code, "co_name");
    oracle_add(text, "\x1f");
    add_text(text, code, "co_qualname");
    oracle_add(text, "\x1f");
    *failed |= !add_text(text, code, "co_filename");
    if (!py.truth(back)) { /* None */
      py.decref(back);
      back = NULL;
    }
  }
  if (line) py.decref(line);
  if (code) py.decref(code);
  py.decref(frame);
  return *failed ? (back ? py.decref(back) : (void)0, NULL) : back;
}

/* Runs the cyclic collector's switch: frames are objects that it counts, and a collection here would free tensors
 * inside the allocator. */
static bool collector(const char *what) {
  static object *gc;
  if (!gc) gc = py.import("gc");
  object *answer = gc ? py.call_method(gc, what, NULL) : NULL;
  bool truth = answer && py.truth(answer) == 1;
  if (answer) py.decref(answer);
  return truth;
}

static enum oracle_state ask_self(struct oracle_text *text) {
  object *type, *value, *trace;
  py.fetch(&type, &value, &trace);
  bool collects = collector("isenabled"), failed = false;
  if (collects) collector("disable");
  object *frame = py.top_frame();
  if (frame) py.incref(frame);
  for (bool first = true; frame; first = false) frame = add_frame(text, frame, first, &failed);
  if (collects) collector("enable");
  py.clear();
  py.restore(type, value, trace);
  return failed ? ORACLE_SKIPPED : ORACLE_HELD;
}

/* The other thread. One question at a time; a question that nobody waits for any more is let go. */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static enum { IDLE, QUESTION, WORKING, ANSWER, LATE } desk;
static unsigned long whose;
static char reply[ORACLE_TEXT];

static const char source[] =
    "import gc, sys, traceback\n"
    "def stack(ident):\n"
    "  collects = gc.isenabled()\n"
    "  gc.disable()\n"
    "  try:\n"
    "    frame = sys._current_frames().get(ident)\n"
    "    if frame is None:\n"
    "      return ''\n"
    "    codes = [f.f_code for f, _ in traceback.walk_stack(frame)]\n"
    "    lines = traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=False)\n"
    "    del frame\n"
    "    return '\\x1e'.join('\\x1f'.join((str(s.lineno), s.name, getattr(c, 'co_qualname', ''), s.filename)) for s, c "
    "in zip(lines, codes))\n"
    "  finally:\n"
    "    if collects:\n"
    "      gc.enable()\n";

static object *make_function(void) {
  object *globals = py.new_dict(), *done = NULL;
  if (globals && !py.set(globals, "__builtins__", py.builtins())) done = py.run(source, FILE_INPUT, globals, globals);
  if (!done) {
    fprintf(stderr, "oracle: cannot compile the question\n");
    py.clear();
    return NULL;
  }
  py.decref(done);
  return py.item(globals, "stack"); /* the globals stay for ever */
}

static void answer_one(unsigned long ident, char *out) {
  static object *function;
  int state = py.ensure();
  if (!function) function = make_function();
  object *text = function ? py.call(function, "k", ident) : NULL;
  const char *utf8 = text ? py.utf8(text) : NULL;
  snprintf(out, ORACLE_TEXT, "%s", utf8 ? utf8 : "?");
  if (text) py.decref(text);
  py.clear();
  py.release(state);
}

static void *serve(void *unused) {
  static char answer[ORACLE_TEXT];
  pthread_mutex_lock(&lock);
  for (;;) {
    while (desk != QUESTION) pthread_cond_wait(&asked, &lock);
    unsigned long ident = whose;
    desk = WORKING;
    pthread_mutex_unlock(&lock);
    answer_one(ident, answer);
    pthread_mutex_lock(&lock);
    if (desk == WORKING) {
      memcpy(reply, answer, ORACLE_TEXT);
      desk = ANSWER;
    } else {
      desk = IDLE; /* LATE */
    }
    pthread_cond_broadcast(&answered);
  }
  return unused;
}

static struct timespec deadline(void) {
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  at.tv_sec += PATIENCE_S;
  return at;
}

static enum oracle_state ask_other(struct oracle_text *text) {
  static bool started;
  struct timespec until = deadline();
  enum oracle_state state = ORACLE_SKIPPED;
  pthread_mutex_lock(&lock);
  pthread_t thread;
  if (!started) started = !pthread_create(&thread, NULL, serve, NULL) && !pthread_detach(thread);
  int waited = 0;
  while (started && desk != IDLE && desk != LATE && !waited) waited = pthread_cond_timedwait(&answered, &lock, &until);
  if (started && desk == IDLE) {
    whose = (unsigned long)pthread_self();
    desk = QUESTION;
    pthread_cond_signal(&asked);
    for (waited = 0; desk != ANSWER && !waited;) waited = pthread_cond_timedwait(&answered, &lock, &until);
    if (desk == ANSWER && strcmp(reply, "?")) {
      oracle_add(text, "%s", reply);
      state = ORACLE_ASKED;
    }
    desk = desk == WORKING ? LATE : IDLE;
    pthread_cond_broadcast(&answered);
  }
  pthread_mutex_unlock(&lock);
  return state;
}

enum oracle_state oracle_python(struct oracle_text *text) {
  if (!have_python() || !py.own()) return ORACLE_NONE;
  if (!alive()) return ORACLE_ENDING;
  enum oracle_state state = py.check() ? ask_self(text) : ask_other(text);
  if (state == ORACLE_SKIPPED || text->full) text->length = 0;
  return text->full ? ORACLE_SKIPPED : state;
}
