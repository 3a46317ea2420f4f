// What only C++ does: exceptions through hooked calls, and destructors of thread-local objects.
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "endings.h"

namespace {

struct Block {
  ~Block() { allocate(1); }
};

void throw_below(int depth) {
  allocate(1);
  if (!depth) throw std::runtime_error("below");
  Block block;
  throw_below(depth - 1);
}

int exceptions() {
  start_cuda();
  int caught = 0;
  for (int i = 0; i < 500; i++) try {
      throw_below(20);
    } catch (const std::exception &) {
      caught++;
    }
  std::printf("%d\n", caught);
  return 0;
}

int uncaught() {
  begin();
  throw 3;
}

thread_local Block of_thread;

int thread_local_destructor() {
  start_cuda();
  std::thread([] {
    Block *mine = &of_thread;
    asm volatile("" ::"r"(mine));
    allocate(1);
  }).join();
  std::printf("ok\n");
  return 0;
}

}  // namespace

extern "C" const mode unwindings[] = {
    {"exceptions", exceptions}, {"terminate", uncaught}, {"thread-local", thread_local_destructor}, {nullptr, nullptr}};
