// A C++ program whose memory all comes from one pool class, of which it reports nothing: Arena::grow is seen to take it
// from the driver, and the question is who called. Prints what each client made the arena take.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory_resource>
#include <string>
#include <vector>

extern "C" {
int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuMemAlloc_v2(std::uint64_t *out, std::size_t size);
}

namespace {

std::string client;
std::map<std::string, std::size_t> taken;

class Arena : public std::pmr::memory_resource {
  std::uint64_t at = 0;
  std::size_t left = 0;

  __attribute__((noinline)) void grow(std::size_t bytes) {
    left = (bytes + 65535) / 65536 * 65536;
    if (cuMemAlloc_v2(&at, left)) std::exit(3);  // grow
    taken[client] += left;
  }

  void *do_allocate(std::size_t bytes, std::size_t) override {
    if (left < bytes) grow(bytes);
    void *p = reinterpret_cast<void *>(at);
    at += bytes;
    left -= bytes;
    return p;
  }
  void do_deallocate(void *, std::size_t, std::size_t) override {}
  bool do_is_equal(const memory_resource &other) const noexcept override { return this == &other; }
};

Arena arena;
volatile std::uintptr_t sink;

void *device(std::size_t bytes) {
  void *p = arena.allocate(bytes);
  sink = reinterpret_cast<std::uintptr_t>(p);
  return p;
}

__attribute__((noinline)) void weights(int layers) {
  client = "weights";
  for (int i = 0; i < layers; i++) device(3 << 20);  // weights
  sink = 0;
}

__attribute__((noinline)) void cache(int requests) {
  client = "cache";
  for (int i = 0; i < requests; i++) device(1 << 20);  // cache
  sink = 0;
}

__attribute__((noinline)) void scratch() {
  client = "scratch";
  device(700000);  // scratch
  sink = 0;
}

}  // namespace

int main() {
  void *context;
  if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0)) return 2;
  weights(12);
  cache(20);
  scratch();
  for (const auto &entry : taken) std::printf("%s %zu\n", entry.first.c_str(), entry.second);
  return 0;
}
