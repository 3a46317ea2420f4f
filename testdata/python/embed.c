/* A program in C that uses CUDA first and brings a Python interpreter in later: embed LIBPYTHON [again]. Sizes of its
 * allocations say what their stacks should be: 1000 before there is an interpreter, 1500 from the first call out of it,
 * 2000 from Python, 3000 from Python in a thread that C made, 4000 from C with an interpreter but no Python frame, 5000
 * after the interpreter ended, 6000 from Python in a thread after it was started again. */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uint64_t *out, size_t size);

__attribute__((visibility("default"))) int embedded_alloc(size_t size);

static struct {
  void (*initialize)(int);
  int (*finalize)(void);
  int (*run)(const char *);
  int (*ensure)(void);
  void (*release)(int);
  void *(*save)(void);
  void (*restore)(void *);
} py;
static void *context;

int embedded_alloc(size_t size) {
  uint64_t address;
  return cuMemAlloc_v2(&address, size);
}

static const char definitions[] =
    "import atexit, ctypes, time\n"
    "program = ctypes.CDLL(None)\n"
    "def inner(size):\n"
    "  return program.embedded_alloc(size)\n"
    "def outer(size):\n"
    "  return [inner(size) for _ in (1,)]\n";

static void *in_thread(void *code) {
  cuCtxSetCurrent(context);
  int state = py.ensure();
  py.run(code);
  py.release(state);
  return NULL;
}

static int run_in_thread(const char *code) {
  pthread_t thread;
  void *state = py.save();
  int failed = pthread_create(&thread, NULL, in_thread, (void *)code) || pthread_join(thread, NULL);
  py.restore(state);
  return failed;
}

static int find(void *library) {
  *(void **)&py.initialize = dlsym(library, "Py_InitializeEx");
  *(void **)&py.finalize = dlsym(library, "Py_FinalizeEx");
  *(void **)&py.run = dlsym(library, "PyRun_SimpleString");
  *(void **)&py.ensure = dlsym(library, "PyGILState_Ensure");
  *(void **)&py.release = dlsym(library, "PyGILState_Release");
  *(void **)&py.save = dlsym(library, "PyEval_SaveThread");
  *(void **)&py.restore = dlsym(library, "PyEval_RestoreThread");
  return py.initialize && py.finalize && py.run && py.ensure && py.release && py.save && py.restore;
}

int main(int argc, char **argv) {
  int failed = argc < 2 || cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || embedded_alloc(1000);
  void *library = failed ? NULL : dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (!library || !find(library)) {
    fprintf(stderr, "embed: %s\n", failed ? "CUDA does not work" : dlerror());
    return 2;
  }
  py.initialize(0);
  failed |= py.run(definitions) || py.run("outer(1500)\nouter(2000)\ntime.sleep(1)\nouter(2000)");
  failed |= run_in_thread("outer(3000)");
  failed |= embedded_alloc(4000);
  failed |= py.finalize();
  failed |= embedded_alloc(5000);
  if (argc < 3) return failed;
  py.initialize(0);
  failed |= py.run(definitions) ||
            py.run("def wait(seconds):\n  time.sleep(seconds)\nfor _ in range(30):\n  wait(0.05)") ||
            run_in_thread("outer(6000)");
  return failed;
}
