/* Stacks on aarch64: compilers there keep the chain of frame pointers, so no rows are needed. */
#include "unwind/unwind.h"

#include "unwind/rows.h"

#if defined(__aarch64__)

#include "base/thread.h"

#define READS_STACK __attribute__((no_sanitize("address", "thread")))

/* Return addresses may be signed (PAC): the instruction that takes the signature off is a hint, so that processors
 * without it pass over it. */
static uintptr_t without_signature(uintptr_t pc) {
  register uintptr_t link __asm__("x30") = pc;
  __asm__("hint #7" : "+r"(link));
  return link;
}

READS_STACK
unsigned mt_unwind(const struct mt_frame *frame, const struct mt_stack_bounds *bounds, uint64_t *out, unsigned depth,
                   bool whole, enum mt_stack_end *end) {
  uintptr_t at = (uintptr_t)frame, pc = without_signature(frame->caller), next = frame->bp;
  unsigned n = 0;
  *end = MT_STACK_BOUNDS;
  for (;;) {
    out[n++] = pc;
    if (!whole && mt_rows_stops(pc - 1)) {
      *end = MT_STACK_INTERPRETER;
      return n;
    }
    if (!next) break;
    if (next <= at || next < bounds->low || next > bounds->top - sizeof *frame || next % 8) return n;
    at = next;
    pc = without_signature(((const struct mt_frame *)at)->caller);
    next = ((const struct mt_frame *)at)->bp;
    if (!pc) break;
    if (n == depth) {
      *end = MT_STACK_DEPTH;
      return n;
    }
  }
  *end = MT_STACK_WHOLE;
  return n;
}

#endif
