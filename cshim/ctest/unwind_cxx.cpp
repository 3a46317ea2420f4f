/* Frames of C++: lambdas, virtual calls through a thunk, algorithms of the standard library, and code that runs while an exception is under way. */
#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using end_function = void (*)();

struct left {
  virtual ~left() = default;
  virtual void call_left(end_function end) { end(); }
  int number = 1;
};

struct right {
  virtual ~right() = default;
  virtual void call_right(end_function end) = 0;
};

struct both : left, right {
  std::string text = "a text that is too long to stand in the object itself";
  __attribute__((noinline)) void call_right(end_function end) override {
    alignas(64) char room[64];
    __asm__ volatile("" : : "r"(room) : "memory");
    end();
    __asm__ volatile("" : : "r"(room) : "memory");
  }
};

struct at_end {
  end_function end;
  ~at_end() {
    end();
    __asm__ volatile("");
  }
};

__attribute__((noinline)) void throw_deeply(int n, end_function end) {
  at_end guard{end};
  if (n) throw_deeply(n - 1, end);
  throw std::runtime_error("on purpose");
}

__attribute__((noinline)) void in_noexcept(end_function end) noexcept {
  std::vector<int> numbers{3, 1, 2};
  end();
  __asm__ volatile("" : : "r"(numbers.data()) : "memory");
}

}  // namespace

/* Calls end nine times. */
extern "C" __attribute__((visibility("default"))) void unwind_cxx(end_function end) {
  int captured = 42;
  auto lambda = [&](int more) {
    captured += more;
    end();
    return captured;
  };
  std::function<int(int)> function = lambda;
  function(1);

  std::unique_ptr<right> object = std::make_unique<both>();
  object->call_right(end);
  both whole;
  whole.call_left(end);

  std::vector<int> numbers{5, 3, 4, 1, 2, 0};
  bool called = false;
  std::sort(numbers.begin(), numbers.end(), [&](int a, int b) {
    if (!called) end();
    called = true;
    return a < b;
  });

  try {
    throw_deeply(2, end); /* three guards end, while the exception passes */
  } catch (const std::exception &e) {
    end();
    __asm__ volatile("" : : "r"(e.what()) : "memory");
  }
  in_noexcept(end);
}
