#define _GNU_SOURCE
#include "capture.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "config.h"
#include "module.h"
#include "nativestack.h"
#include "python.h"

#pragma weak __libc_stack_end
extern void *__libc_stack_end;

int mt_capture_start(void) {
  mt_unwind_start();
  mt_python_start();
  return mt_native_start();
}

void mt_capture_forget(unsigned gone) {
  mt_unwind_forget();
  if (gone) mt_native_forget();
}

static inline bool inside(const struct mt_stack_bounds *bounds, uintptr_t address) { return address - bounds->low < bounds->top - bounds->low; }

/* The stack that a thread was born with stays mapped as long as it lives, so its bounds are kept. Others may be unmapped at any time: fibers, signal stacks. */
static bool is_own_stack(const struct mt_stack_bounds *bounds) {
  return inside(bounds, (uintptr_t)pthread_self()) || (&__libc_stack_end && inside(bounds, (uintptr_t)__libc_stack_end));
}

static __attribute__((noinline)) bool find_stack(struct mt_thread *self, uintptr_t sp, struct mt_stack_bounds *bounds) {
  if (!mt_stack_find(sp, bounds)) return false;
  if (is_own_stack(bounds)) self->stack = *bounds;
  return true;
}

static uint32_t capture_native(struct mt_thread *self, const struct mt_frame *frame) {
  uint64_t stack[1 + MT_NATIVE_MAX]; /* as the dictionary has it: the end, then the addresses */
  struct mt_stack_bounds bounds = self->stack;
  if (MT_UNLIKELY(!inside(&bounds, (uintptr_t)frame)) && !find_stack(self, (uintptr_t)frame, &bounds)) {
    stack[0] = MT_STACK_BOUNDS;
    stack[1] = frame->caller;
    return mt_native_intern(stack, 1);
  }
  enum mt_stack_end end = MT_STACK_WHOLE;
  unsigned count = mt_unwind(frame, &bounds, stack + 1, mt_config.native_depth, mt_config.whole_stacks, &end);
  stack[0] = end;
  return mt_native_intern(stack, count);
}

static uint32_t capture_python(void) {
  struct mt_pyraw frames[MT_PYTHON_MAX];
  enum mt_stack_end end = MT_STACK_WHOLE;
  unsigned count = mt_python_walk(frames, mt_config.python_depth, &end);
  return count ? mt_python_intern(frames, count, end) : 0;
}

struct mt_stacks mt_capture(struct mt_thread *self, const struct mt_frame *frame, uint8_t kind) {
  struct mt_stacks stacks = {0, 0};
  if (MT_UNLIKELY(!mt_config.native_depth || (kind == MT_FREE && mt_config.no_free_stacks))) {
    stacks.native = mt_native_intern((const uint64_t[]){MT_STACK_CALLER, frame->caller}, 1);
    return stacks;
  }
  stacks.native = capture_native(self, frame);
  if (mt_config.python_depth) stacks.python = capture_python();
  return stacks;
}
