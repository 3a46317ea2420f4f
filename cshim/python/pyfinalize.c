#define _GNU_SOURCE
#include "python/pyfinalize.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>

#include "base/atload.h"
#include "base/sandbox.h"
#include "base/sys.h"
#include "python/interpreter.h"
#include "python/pyapi.h"

/* A walk takes less than a microsecond, but its thread may have been preempted in it. */
#define MT_PYFINALIZE_WAIT_MS 500u

static struct {
  void *(*modules)(void);                            /* borrowed */
  void *(*item)(void *, const char *);               /* borrowed; leaves no exception */
  void *(*attribute)(void *, const char *);
  void *(*function)(struct mt_pymethod *, void *, void *);
  void *(*call)(void *, ...);
  int (*on_py_atexit)(void (*)(void));
  void (*incref)(void *);
  void (*decref)(void *);
  void *function_type, *none;
} api;

uint32_t mt_pyfinalize_pid;

static struct {
  void (*ending)(void);
  void (*ended)(void);
} listener MT_AT_LOAD;

void mt_pyfinalize_on_end(void (*ending)(void), void (*ended)(void)) {
  listener.ending = ending;
  listener.ended = ended;
}

static pthread_t main_thread; /* that ran mt_pyfinalize_register */
static bool atexit_registered, py_atexit_registered, main_finalizes;
static bool replaced;  /* the interpreter of mt_pyfinalize_pid was freed */
static uint32_t ended;  /* one ended since the last mt_pyfinalize_ended */
static int barrier;    /* the membarrier command that works, 0 none */

static void *find(const char *name) { return (void *)mt_interpreter_symbol(name); }

static long membarrier(int command) { return mt_sys(SYS_membarrier, command); }

/* Registering for MEMBARRIER_CMD_PRIVATE_EXPEDITED (membarrier(2)) takes the kernel milliseconds: not on a thread of
 * the program's, nor before the interpreter was found. */
void mt_pyfinalize_prepare_barrier(void) {
  int error = errno;
  long known = mt_sandbox_kind() == MT_SANDBOX_OWN ? 0 : membarrier(MEMBARRIER_CMD_QUERY);
  if (known > 0 && known & MEMBARRIER_CMD_PRIVATE_EXPEDITED && !membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
    __atomic_store_n(&barrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, __ATOMIC_RELAXED);
  else if (known > 0 && known & MEMBARRIER_CMD_GLOBAL)
    __atomic_store_n(&barrier, MEMBARRIER_CMD_GLOBAL, __ATOMIC_RELAXED);
  errno = error;
}

void mt_pyfinalize_prepare(void) {
  if (api.modules) return;
  int error = errno;
  api.item = (void *(*)(void *, const char *))find("PyDict_GetItemString");
  api.attribute = (void *(*)(void *, const char *))find("PyObject_GetAttrString");
  api.function = (void *(*)(struct mt_pymethod *, void *, void *))find("PyCFunction_NewEx");
  api.call = (void *(*)(void *, ...))find("PyObject_CallFunctionObjArgs");
  api.on_py_atexit = (int (*)(void (*)(void)))find("Py_AtExit");
  api.incref = (void (*)(void *))find("Py_IncRef");
  api.decref = (void (*)(void *))find("Py_DecRef");
  api.function_type = (void *)mt_interpreter_variable("PyCFunction_Type");
  api.none = (void *)mt_interpreter_variable("_Py_NoneStruct");
  if (api.item && api.attribute && api.function && api.call && api.on_py_atexit && api.incref && api.decref &&
      api.function_type && api.none)
    __atomic_store_n(&api.modules, (void *(*)(void))find("PyImport_GetModuleDict"), __ATOMIC_RELEASE);
  errno = error;
}

bool mt_pyfinalize_prepared(void) { return __atomic_load_n(&api.modules, __ATOMIC_ACQUIRE) != NULL; }

/* From here on every other thread either sees what was stored before, or its own earlier stores are visible here. */
static void synchronize_threads(void) {
  int command = __atomic_load_n(&barrier, __ATOMIC_RELAXED);
  if (command && mt_sandbox_kind() != MT_SANDBOX_OWN && !membarrier(command)) return;
  mt_sys_sleep(1000000); /* no store stays unseen for so long */
}

/* Called by the module atexit with the lock held: no thread state was freed, and Py_IsFinalizing() is still false
 * (CPython, Py_FinalizeEx in Python/pylifecycle.c). A program may call this earlier, on any thread. */
static void *on_atexit(void *self, void *arguments) {
  (void)self, (void)arguments;
  int error = errno;
  if (pthread_equal(pthread_self(), main_thread)) if (listener.ending) listener.ending();
  main_finalizes = pthread_equal(pthread_self(), main_thread);
  __atomic_store_n(&mt_pyfinalize_pid, (uint32_t)mt_sys_getpid(), __ATOMIC_RELEASE);
  synchronize_threads();
  mt_threads_wait_for_captures(MT_PYFINALIZE_WAIT_MS);
  errno = error;
  api.incref(api.none);
  return api.none;
}

static struct mt_pymethod method = {"memtrace_at_exit", on_atexit, MT_PY_NO_ARGUMENTS, NULL};

/* Called by Py_FinalizeEx (Py_AtExit), after everything was freed. */
static void on_py_atexit(void) {
  atexit_registered = py_atexit_registered = false;
  replaced = true;
  if (listener.ended) listener.ended();
  __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
}

/* The program may have replaced atexit.register. */
static bool register_with(void *add) {
  void *function = mt_pyapi_type_of(add) == api.function_type ? api.function(&method, NULL, NULL) : NULL;
  if (!function) return false;
  main_thread = pthread_self();
  void *result = api.call(add, function, NULL);
  api.decref(function);
  if (result) api.decref(result);
  return result;
}

bool mt_pyfinalize_register(void) {
  if (!api.modules) return false;
  if (!py_atexit_registered) py_atexit_registered = !api.on_py_atexit(on_py_atexit);
  if (atexit_registered) return true;
  void *modules = api.modules(), *module = modules ? api.item(modules, "atexit") : NULL,
       *add = module ? api.attribute(module, "register") : NULL;
  if (!add) return false;
  atexit_registered = register_with(add);
  api.decref(add);
  return atexit_registered;
}

bool mt_pyfinalize_registered(void) { return py_atexit_registered; }

bool mt_pyfinalize_stops_thread(void) {
  if (__atomic_load_n(&mt_pyfinalize_pid, __ATOMIC_ACQUIRE) != (uint32_t)mt_sys_getpid())
    return false; /* a child that was forked meanwhile goes on */
  return !main_finalizes || !pthread_equal(pthread_self(), main_thread);
}

bool mt_pyfinalize_ended(void) {
  return __atomic_load_n(&ended, __ATOMIC_RELAXED) && __atomic_exchange_n(&ended, 0, __ATOMIC_ACQ_REL);
}

void mt_pyfinalize_test_passed(void) {
  if (replaced) __atomic_store_n(&mt_pyfinalize_pid, 0, __ATOMIC_RELEASE);
  replaced = false;
}
