/* The stack of the caller by the unwinder under test and by libgcc's, whose header has the same name as ours. */
#pragma once

#include <string.h>

#include "check.h"
#include "unwind/unwind.h"

struct _Unwind_Context;
int _Unwind_Backtrace(int (*)(struct _Unwind_Context *, void *), void *);
uintptr_t _Unwind_GetIP(struct _Unwind_Context *);

struct backtrace {
  uint64_t pc[MT_NATIVE_MAX];
  unsigned n;
  enum mt_stack_end end;
};

static int backtrace_collect(struct _Unwind_Context *context, void *into) {
  struct backtrace *t = into;
  uint64_t pc = _Unwind_GetIP(context); /* 0 above the outermost frame */
  if (pc && t->n < MT_NATIVE_MAX) t->pc[t->n++] = pc;
  return 0;
}

/* What libgcc finds from that frame on. */
static void backtrace_expected(const struct mt_frame *frame, struct backtrace *t) {
  struct backtrace all = {.n = 0};
  unsigned skip = 0;
  _Unwind_Backtrace(backtrace_collect, &all);
  while (skip < all.n && all.pc[skip] != frame->caller) skip++;
  t->n = all.n - skip;
  memcpy(t->pc, all.pc + skip, t->n * sizeof *t->pc);
}

static bool backtrace_equal(const struct backtrace *a, const struct backtrace *b) {
  return a->n == b->n && !memcmp(a->pc, b->pc, a->n * sizeof *a->pc);
}
