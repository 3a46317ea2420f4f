// The native half of the stress program: everything that can happen to a C or C++ stack while memory is allocated on
// it. Each function is called by many threads at once, makes its allocations through the driver, gives all of it back,
// and returns a number that depends on its arguments alone.
#include <alloca.h>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <stdexcept>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

extern "C" {
int cuMemAlloc_v2(uint64_t *out, size_t size);
int cuMemFree_v2(uint64_t address);
int cuCtxGetCurrent(void **context);
int cuCtxSetCurrent(void *context);
}

#define EXPORT extern "C" __attribute__((visibility("default")))
#define NOINLINE __attribute__((noinline))

static void *context; // of the thread that prepared

namespace {

// A block of device memory that lives as long as its scope.
struct Block {
  uint64_t address = 0;
  int status;
  explicit Block(size_t size) { status = cuMemAlloc_v2(&address, size); }
  ~Block() {
    if (!status) cuMemFree_v2(address);
  }
  Block(const Block &) = delete;
};

NOINLINE int touch(size_t size) {
  Block block(size);
  return block.status;
}

void adopt() {
  void *current = nullptr;
  cuCtxGetCurrent(&current);
  if (!current) cuCtxSetCurrent(context);
}

// Frames of different sizes, every third with one whose size only the run knows, and every fourth realigned.
template <int N> NOINLINE int descend(int depth, int (*bottom)(size_t), size_t size) {
  volatile char room[8 + 24 * N];
  room[0] = static_cast<char>(depth);
  if (N % 3 == 0) {
    auto *more = static_cast<volatile char *>(alloca(static_cast<size_t>(16 + depth * 8)));
    more[0] = room[0];
  }
  alignas(N % 4 == 0 ? 64 : 8) volatile char aligned[64];
  aligned[0] = room[0];
  Block own(256 + static_cast<size_t>(N));
  int below = depth <= 0 ? bottom(size) : descend<(N + 1) % 8>(depth - 1, bottom, size);
  return below + (room[0] != static_cast<char>(depth)) + (aligned[0] != room[0]);
}

int fail(size_t size) {
  Block block(size);
  throw std::length_error("on purpose");
}

} // namespace

EXPORT void stress_prepare() { cuCtxGetCurrent(&context); }

EXPORT int stress_churn(int depth) {
  adopt();
  return descend<0>(depth, touch, 4096);
}

// Raises through `depth` frames with destructors that free, and catches.
EXPORT int stress_throw(int depth) {
  adopt();
  try {
    return descend<1>(depth, fail, 512);
  } catch (const std::length_error &error) {
    Block block(128);
    return 100 + static_cast<int>(strlen(error.what())) + block.status;
  }
}

// Loads a plug-in, lets it call back, and unloads it, so that the next one may come to lie at its addresses.
EXPORT int stress_plugin(const char *path, int depth) {
  adopt();
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "stress: %s\n", dlerror());
    return -1;
  }
  auto *plug = reinterpret_cast<int (*)(int (*)(size_t), int)>(dlsym(library, "plug"));
  int value = plug ? plug(touch, depth) : -2;
  dlclose(library);
  return value;
}

// A forked child has no CUDA: it is told so, and ends.
EXPORT int stress_fork(int how) {
  pid_t child = fork();
  if (!child) {
    alarm(60);
    uint64_t address = 0;
    int status = cuMemAlloc_v2(&address, 4096);
    if (how % 3 == 0) status += stress_throw(3);
    _exit(status & 127);
  }
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return status;
}

static thread_local volatile int handled;

static void on_signal(int) { handled = handled + 1 + touch(2048); }

// Takes a signal on a stack of its own, and makes CUDA calls there.
EXPORT int stress_signal(int count) {
  adopt();
  static const bool installed = [] {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK | SA_NODEFER;
    return !sigaction(SIGUSR2, &action, nullptr);
  }();
  const size_t size = 64 << 10;
  stack_t mine = {}, before = {};
  mine.ss_sp = malloc(size);
  mine.ss_size = size;
  if (!installed || !mine.ss_sp || sigaltstack(&mine, &before)) return -1;
  handled = 0;
  for (int i = 0; i < count; i++) pthread_kill(pthread_self(), SIGUSR2);
  int value = handled;
  sigaltstack(&before, nullptr);
  free(mine.ss_sp);
  return value;
}

namespace {

struct Fiber {
  ucontext_t self, back;
  int depth, value;
};

thread_local Fiber *running;

void fiber_main() {
  Fiber *fiber = running;
  for (int i = 0; i < 3; i++) {
    fiber->value += 1 + descend<2>(fiber->depth, touch, 1024);
    swapcontext(&fiber->self, &fiber->back);
    fiber = running;
  }
}

void resume(Fiber *fiber) {
  running = fiber;
  swapcontext(&fiber->back, &fiber->self);
}

} // namespace

// Two fibers on stacks of the heap take turns.
EXPORT int stress_fibers(int depth) {
  adopt();
  const size_t size = 128 << 10;
  Fiber fibers[2] = {};
  for (Fiber &fiber : fibers) {
    getcontext(&fiber.self);
    fiber.self.uc_stack.ss_sp = malloc(size);
    fiber.self.uc_stack.ss_size = size;
    fiber.self.uc_link = &fiber.back;
    fiber.depth = depth;
    makecontext(&fiber.self, fiber_main, 0);
  }
  for (int i = 0; i < 3; i++) {
    for (Fiber &fiber : fibers) resume(&fiber);
  }
  int value = fibers[0].value + fibers[1].value;
  for (Fiber &fiber : fibers) free(fiber.self.uc_stack.ss_sp);
  return value;
}

static void *small_main(void *argument) {
  adopt();
  for (int i = 0; i < 4; i++) *static_cast<int *>(argument) += 1 + touch(512);
  return nullptr;
}

// A thread with as small a stack as the system gives, from 16 KiB on: what libraries keep for each thread is taken from
// it.
EXPORT int stress_small_thread(int) {
  int value = 0;
  for (size_t size = 16 << 10; size <= 1 << 20; size *= 2) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_t thread;
    int error = pthread_attr_setstacksize(&attributes, size) ? EINVAL
                                                             : pthread_create(&thread, &attributes, small_main, &value);
    pthread_attr_destroy(&attributes);
    if (error) continue;
    pthread_join(thread, nullptr);
    return value;
  }
  return -1;
}

// A detached thread that is still allocating when the process ends.
static void *endless_main(void *) {
  adopt();
  for (;;) descend<3>(4, touch, 256);
}

EXPORT int stress_leave_thread(int) {
  pthread_t thread;
  return pthread_create(&thread, nullptr, endless_main, nullptr) || pthread_detach(thread) ? -1 : 0;
}
