// What the test of cshim/allocator takes for libc10_cuda.so: an allocator with the names and the shapes of PyTorch's, whose own choice of a pool is the oracle. Compiled by a C++ compiler, so that
// names, tables of virtual functions and std::function are as PyTorch's are.
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

struct CUstream_st;
#define SHOWN __attribute__((visibility("default")))

namespace c10 {
namespace cuda {

class SHOWN CUDAStream {
 public:
  long device, number;
  CUstream_st *stream() const;
};
static CUDAStream current{0, 0};
CUstream_st *CUDAStream::stream() const { return reinterpret_cast<CUstream_st *>(number * 0x1000); }
SHOWN CUDAStream getCurrentCUDAStream(signed char) { return current; }
SHOWN signed char device_count() { return 2; }

namespace CUDACachingAllocator {

using Pool = std::pair<unsigned long long, unsigned long long>;

class CUDAAllocator {
 public:
  virtual ~CUDAAllocator() = default;
  virtual void *raw_alloc_with_stream(unsigned long bytes, CUstream_st *stream) = 0;
  virtual double getMemoryFraction(signed char device) = 0;
  virtual void setMemoryFraction(double fraction, signed char device) = 0;
#ifdef FAKE_NEWER
  virtual void emptyCache(Pool pool) = 0;
#else
  virtual void emptyCache() = 0;
#endif
  virtual void beginAllocateToPool(signed char device, Pool pool, std::function<bool(CUstream_st *)> filter) = 0;
  virtual void endAllocateToPool(signed char device, Pool pool) = 0;
};

namespace Native {

class NativeCachingAllocator : public CUDAAllocator {
 public:
  std::vector<std::pair<Pool, std::function<bool(CUstream_st *)>>> begun;
  double fractions[2] = {1, 0.25};
  Pool chosen;
  CUstream_st *stream = nullptr;
  unsigned emptied = 0;

  // As PyTorch's: the first pool whose function says yes.
  void choose(CUstream_st *of) {
    chosen = Pool(0, 0);
    stream = of;
    for (auto &entry : begun)
      if (entry.second(of)) {
        chosen = entry.first;
        return;
      }
  }
  void *raw_alloc_with_stream(unsigned long bytes, CUstream_st *of) override {
    if (!bytes) throw std::runtime_error("nothing");
    choose(of);
    extern void (*on_block)();
    if (on_block) on_block();
    return this;
  }
  double getMemoryFraction(signed char device) override { return fractions[int(device)]; }
  void setMemoryFraction(double fraction, signed char device) override { fractions[int(device)] = fraction; }
#ifdef FAKE_NEWER
  void emptyCache(Pool pool) override { emptied += unsigned(pool.first + 10 * pool.second); }
#else
  void emptyCache() override { emptied++; }
#endif
  void beginAllocateToPool(signed char, Pool pool, std::function<bool(CUstream_st *)> filter) override {
    for (auto &entry : begun)
      if (entry.first == pool) throw std::runtime_error("begun already");
    begun.emplace_back(pool, std::move(filter));
  }
  void endAllocateToPool(signed char, Pool pool) override {
    for (auto at = begun.begin(); at != begun.end(); ++at)
      if (at->first == pool) {
        begun.erase(at);
        return;
      }
  }
};
void (*on_block)();
}  // namespace Native

#ifdef FAKE_OTHER
class Other : public Native::NativeCachingAllocator {
 public:
  double getMemoryFraction(signed char) override { return 1; }
};
static Other other;
SHOWN CUDAAllocator *allocator = &other;
#else
static Native::NativeCachingAllocator native;
SHOWN CUDAAllocator *allocator = &native;
#endif

}  // namespace CUDACachingAllocator
}  // namespace cuda
}  // namespace c10

// What the test calls, in C.
using namespace c10::cuda::CUDACachingAllocator;
static Native::NativeCachingAllocator *it() { return static_cast<Native::NativeCachingAllocator *>(allocator); }
extern "C" {
SHOWN void fake_on_block(void (*call)()) { Native::on_block = call; }
// kind 0: all streams; 1: one stream, by a function that does not fit into two words; 2: none. False if the allocator refused.
SHOWN int fake_begin(int device, unsigned long long a, unsigned long long b, int kind, CUstream_st *of) {
  struct {
    CUstream_st *of;
    char more[40];
  } large{of, "more than std::function keeps itself"};
  std::function<bool(CUstream_st *)> filter = [](CUstream_st *) { return true; };
  if (kind == 1) filter = [large](CUstream_st *target) { return large.more[0] == 'm' && target == large.of; };
  if (kind == 2) filter = [](CUstream_st *) { return false; };
  try {
    allocator->beginAllocateToPool(static_cast<signed char>(device), Pool(a, b), filter);
  } catch (const std::runtime_error &) {
    return 0;
  }
  return 1;
}
SHOWN void fake_end(int device, unsigned long long a, unsigned long long b) { allocator->endAllocateToPool(static_cast<signed char>(device), Pool(a, b)); }
SHOWN int fake_alloc(unsigned long bytes, CUstream_st *of) {
  try {
    allocator->raw_alloc_with_stream(bytes, of);
  } catch (const std::runtime_error &) {
    return 0;
  }
  return 1;
}
SHOWN void fake_chosen(unsigned long long *a, unsigned long long *b) { *a = it()->chosen.first, *b = it()->chosen.second; }
SHOWN void fake_current(long number) { c10::cuda::current = c10::cuda::CUDAStream{0, number}; }
SHOWN void fake_fraction(double fraction, int device) { allocator->setMemoryFraction(fraction, static_cast<signed char>(device)); }
SHOWN double fake_fraction_of(int device) { return it()->fractions[device]; }
SHOWN unsigned fake_empty() {
#ifdef FAKE_NEWER
  allocator->emptyCache(Pool(3, 4));
#else
  allocator->emptyCache();
#endif
  return it()->emptied;
}
}
