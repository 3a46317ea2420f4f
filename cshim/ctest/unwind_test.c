/* Native stacks, address by address against libgcc's unwinder. */
#define _GNU_SOURCE
#include "../unwind.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

/* libgcc's, whose header has the same name as ours. */
struct _Unwind_Context;
int _Unwind_Backtrace(int (*)(struct _Unwind_Context *, void *), void *);
uintptr_t _Unwind_GetIP(struct _Unwind_Context *);

#define DEPTH 256

struct trace {
  uint64_t pc[DEPTH];
  unsigned n;
};

static int collect(struct _Unwind_Context *context, void *into) {
  struct trace *t = into;
  uint64_t pc = _Unwind_GetIP(context);
  if (pc && t->n < DEPTH) t->pc[t->n++] = pc;
  return 0;
}

static enum mt_stack_end last_end;
static unsigned last_depth;

__attribute__((noinline)) static void compare(void) {
  const struct mt_frame *frame = __builtin_frame_address(0);
  struct mt_stack_bounds bounds;
  struct trace ours = {.n = 0}, theirs = {.n = 0};
  CHECK(mt_stack_find((uintptr_t)frame, &bounds));
  ours.n = mt_unwind(frame, &bounds, ours.pc, DEPTH, true, &last_end);
  last_depth = ours.n;
  _Unwind_Backtrace(collect, &theirs);
  unsigned skip = 0;
  while (skip < theirs.n && theirs.pc[skip] != frame->caller) skip++;
  CHECK_EQ(ours.n, theirs.n - skip);
  CHECK(!memcmp(ours.pc, theirs.pc + skip, ours.n * sizeof *ours.pc));
}

__attribute__((noinline)) static int recurse(int n) {
  if (n)
    n = recurse(n - 1) + 1;
  else
    compare();
  __asm__ volatile("");
  return n;
}

static void recursion(void) {
  recurse(0);
  CHECK_EQ(last_end, MT_STACK_WHOLE);
  recurse(100);
  CHECK_EQ(last_end, MT_STACK_WHOLE);
  CHECK(last_depth > 100);
}

int main(void) {
  static const struct check_case cases[] = {{"recursion", recursion}};
  return check_main("unwind", cases, sizeof cases / sizeof *cases);
}
