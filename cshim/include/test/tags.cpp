// SPDX-License-Identifier: Apache-2.0
// Uses the C++ part of memtrace.h. Prints "1" or "0": whether somebody records.
#include "memtrace.h"

#include <cstdio>
#include <stdexcept>
#include <string>

#if __cplusplus >= 201103L
#include <type_traits>
static_assert(!std::is_copy_constructible<memtrace::tag>::value, "a tag cannot be copied");
static_assert(!std::is_move_constructible<memtrace::tag>::value, "a tag cannot be moved");
static_assert(!std::is_convertible<const char *, memtrace::tag>::value, "a tag is made explicitly");
#endif

static void fail() {
  memtrace::tag outer("outer");
  MEMTRACE_TAG_SCOPE("scope");
  memtrace::mark("throwing");
  throw std::runtime_error("unwound");
}

static void pool() {
  char memory[64];
  const uint64_t arena = memtrace::pool_create("arena", 1);
  memtrace::pool_alloc(arena, memory, sizeof memory);
  memtrace::pool_free(arena, memory);
  memtrace::pool_destroy(arena);
}

int main() {
  pool();
  {
    std::string name = "layer";
    memtrace::tag layer((name + ".3").c_str());
    memtrace::step(1);
    memtrace::epoch(2);
  }
  try {
    fail();
  } catch (const std::runtime_error &) {
    memtrace::mark("caught");
  }
  std::printf("%d\n", memtrace::active() ? 1 : 0);
  return 0;
}
