/* A call stack in memory: a thread has a buffer for one of each kind. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MT_NATIVE_MAX 256u
#define MT_PYTHON_MAX 256u

/* What a function with a frame pointer leaves on its stack, on x86-64 and aarch64 alike: __builtin_frame_address(0)
 * points to it. */
struct mt_frame {
  uintptr_t bp;     /* the caller's frame pointer, or whatever it keeps in that register */
  uintptr_t caller; /* return address */
};

/* The mapping of a stack: readable memory. */
struct mt_stack_bounds {
  uintptr_t low, top;
};

static inline bool mt_stack_holds(const struct mt_stack_bounds *bounds, const void *address) {
  return (uintptr_t)address - bounds->low < bounds->top - bounds->low;
}

/* One frame as it is found: cheap to collect, compared word by word. */
struct mt_pyraw {
  uint64_t code;     /* address of the code object | 1 where C code entered the interpreter with this frame */
  uint64_t position; /* its instruction pointer, or f_lasti in older versions */
  uint64_t identity; /* differs for another code object at the same address */
  uint64_t self;     /* the object whose method this is, for frames that call a framework's modules; else 0 */
};
