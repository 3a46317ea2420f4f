#define _GNU_SOURCE
#include "record/capture.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "base/atload.h"
#include "base/config.h"
#include "base/sys.h"
#include "python/python.h"
#include "record/caller.h"
#include "spool/dict.h"
#include "spool/nativestack.h"
#include "unwind/memo.h"

#define MT_NEAR_TOP (256u << 10)

#pragma weak __libc_stack_end
extern void *__libc_stack_end;

int mt_capture_start(void) {
  mt_unwind_start();
  mt_python_start();
  return mt_native_start() || mt_memo_start() ? -1 : 0;
}

static void (*on_unload)(void) MT_AT_LOAD;

void mt_capture_on_unload(void (*listener)(void)) { on_unload = listener; }

void mt_capture_invalidate(unsigned gone) {
  mt_unwind_invalidate();
  if (!gone) return;
  mt_native_invalidate();
  mt_python_check_unloaded();
  if (on_unload) on_unload();
}

/* The stack that a thread was born with stays mapped as long as it lives, so its bounds are kept. Others may be
 * unmapped at any time: fibers, signal stacks. So may what lies right above a thread's stack, which the kernel's list
 * shows as one with it: all frames lie below what the C library keeps for the thread. */
static bool is_own_stack(struct mt_stack_bounds *bounds) {
  void *thread = (void *)pthread_self();
  if (mt_stack_holds(bounds, thread)) bounds->top = (uintptr_t)thread & ~(uintptr_t)7;
  else if (!&__libc_stack_end || !mt_stack_holds(bounds, __libc_stack_end)) return false;
  return true;
}

/* A thread's first frames are close below glibc's struct pthread, at the top of its stack. If all pages in between are
 * readable, they are its stack's: one system call (MADV_POPULATE_READ, Linux 5.14), where reading /proc/self/maps takes
 * a dozen, which was most of the cost of a short-lived thread. Deeper frames are looked up anew. */
static bool is_near_top(const struct mt_frame *frame, struct mt_stack_bounds *bounds) {
#ifdef MADV_POPULATE_READ
  uintptr_t top = (uintptr_t)pthread_self() & ~(uintptr_t)7, low = (uintptr_t)frame & ~(uintptr_t)(MT_PAGE - 1);
  if ((uintptr_t)frame >= top || top - low > MT_NEAR_TOP) return false;
  int error = errno;
  bool readable = !mt_sys_madvise((void *)low, ((top + MT_PAGE - 1) & ~(uintptr_t)(MT_PAGE - 1)) - low,
                                  MADV_POPULATE_READ);
  errno = error;
  *bounds = (struct mt_stack_bounds){low, top};
  return readable;
#else
  return (void)frame, (void)bounds, false;
#endif
}

static __attribute__((noinline)) bool find_stack(struct mt_thread *self, const struct mt_frame *frame,
                                                 struct mt_stack_bounds *bounds) {
  if (is_near_top(frame, bounds)) {
    self->stack = *bounds;
    return true;
  }
  if (!mt_stack_find((uintptr_t)frame, bounds)) return false;
  struct mt_stack_bounds own = *bounds;
  if (is_own_stack(&own) && mt_stack_holds(&own, frame)) self->stack = *bounds = own;
  return true;
}

static uint32_t intern_address(enum mt_stack_end end, uintptr_t caller) {
  return mt_native_intern((const uint64_t[]){end, caller}, 1);
}

/* The caller alone, where no more is wanted. What a signal handler interrupted may be just about to use what the thread
 * remembers. */
static uint32_t intern_caller(struct mt_thread *self, uintptr_t caller) {
  if (MT_UNLIKELY(self->capturing)) return intern_address(MT_STACK_CALLER, caller);
  struct mt_recent *recent = mt_recent_caller(self, caller);
  if (MT_UNLIKELY(!recent->stack)) recent->stack = intern_address(MT_STACK_CALLER, caller);
  return recent->stack;
}

/* Walks, and remembers what it found for the next time that the key comes. */
static __attribute__((noinline)) uint32_t walk_native(struct mt_thread *self, const struct mt_frame *frame,
                                                      const struct mt_stack_bounds *bounds, uint64_t key, bool own) {
  enum mt_stack_end end = MT_STACK_WHOLE;
  self->walks++;
  unsigned count =
      mt_unwind(frame, bounds, self->native + 1, mt_dict_depth(mt_config.native_depth), mt_config.whole_stacks, &end);
  self->native[0] = end;
  uint32_t id = mt_native_intern(self->native, count);
  if (MT_UNLIKELY(!id && count > 1))
    return intern_address(MT_STACK_DEPTH, frame->caller); /* the dictionary is full for it; the caller still fits */
  struct mt_stack_memo *memo = id && own ? mt_memo_insert(key, frame, bounds->top, self->native + 1, count, id) : NULL;
  mt_memo_table_chain(&self->memo, memo);
  return id;
}

static uint32_t capture_native(struct mt_thread *self, const struct mt_frame *frame, uintptr_t caller,
                               uint32_t python) {
  struct mt_stack_bounds bounds = self->stack;
  bool own = mt_stack_holds(&bounds, frame);
  if (MT_UNLIKELY(!own)) {
    if (!find_stack(self, frame, &bounds)) return intern_address(MT_STACK_BOUNDS, caller);
    own = mt_stack_holds(&self->stack, frame);
  }
  /* The key: the thread's last stack, where it is, and its Python stack; the next event of a loop has the same. */
  uint64_t key = (uint64_t)frame ^ (uint64_t)frame->caller << 20 ^ (uint64_t)self->memo << 26 ^ (uint64_t)python << 47;
  struct mt_stack_memo *memo = MT_LIKELY(own) ? mt_memo_find(self->memo, key, frame, bounds.top)
                                              : NULL; /* it reads where a walk might not get to */
  if (MT_UNLIKELY(!memo)) return walk_native(self, frame, &bounds, key, own);
  mt_memo_table_chain(&self->memo, memo);
  return memo->id;
}

struct mt_stacks mt_capture_at(struct mt_thread *self, uintptr_t address) {
  struct mt_stacks stacks = {0, 0};
  if (mt_config.python_depth && !self->capturing) {
    mt_thread_capture_begin(self);
    stacks.python = mt_python_capture(self, mt_config.python_depth);
    mt_thread_capture_end(self);
  }
  stacks.native = intern_address(stacks.python ? MT_STACK_INTERPRETER : MT_STACK_WHOLE, address);
  return stacks;
}

struct mt_stacks mt_capture(struct mt_thread *self, const struct mt_frame *frame, uintptr_t caller, uint8_t kind) {
  struct mt_stacks stacks = {0, 0};
  bool bare = self->capturing || (kind == MT_FREE && !mt_config.free_stacks);
  if (MT_LIKELY(mt_config.native_depth)) mt_memo_table_prefetch(self->memo);
  if (MT_LIKELY(mt_config.python_depth && !bare)) {
    mt_memo_table_prefetch(self->pymemo);
    mt_thread_capture_begin(self);
    stacks.python = mt_python_capture(self, mt_config.python_depth);
    mt_thread_capture_end(self);
  }
  if (MT_UNLIKELY(!mt_config.native_depth || bare)) {
    stacks.native = intern_caller(self, caller);
    return stacks;
  }
  self->capturing = 1;
  stacks.native = capture_native(self, frame, caller, stacks.python);
  self->capturing = 0;
  return stacks;
}
