#include "frames.h"

#include <execinfo.h>

enum { KINDS = 8, HERE_MAX = 256 };

struct descent {
  uint64_t path;
  void (*at_bottom)(void *);
  void *argument;
};

typedef uint64_t level(const struct descent *descent, unsigned left);

static level *const levels_by_kind[KINDS];

/* Nothing is left to do behind the call in a function whose callee's result is its own; the volatile room keeps it from
 * becoming a jump. */
static inline uint64_t go_down(const struct descent *descent, unsigned left) {
  if (left) return levels_by_kind[(descent->path >> left * 3 % 61) % KINDS](descent, left - 1);
  descent->at_bottom(descent->argument);
  return 0;
}

/* words of locals, and values that live across the call and so need callee-saved registers. */
#define LEVEL(number, words, more)                                                             \
  static __attribute__((noinline)) uint64_t level_##number(const struct descent *descent, unsigned left) { \
    volatile uint64_t room[words];                                                             \
    room[0] = left;                                                                            \
    uint64_t kept = room[0] * number, result = go_down(descent, left);                         \
    return result + kept + room[0] + (more);                                                   \
  }

LEVEL(0, 1, 0)
LEVEL(1, 3, descent->path)
LEVEL(2, 8, left)
LEVEL(3, 2, descent->path + left)
LEVEL(4, 33, left)
LEVEL(5, 16, descent->path ^ left)
LEVEL(6, 5, 0)
LEVEL(7, 130, descent->path)

static level *const levels_by_kind[KINDS] = {level_0, level_1, level_2, level_3, level_4, level_5, level_6, level_7};

void frames_descend(unsigned levels, uint64_t path, void (*at_bottom)(void *), void *argument) {
  const struct descent descent = {path, at_bottom, argument};
  volatile uint64_t result = go_down(&descent, levels);
  (void)result;
}

__attribute__((noinline)) unsigned frames_here(void) {
  void *found[HERE_MAX];
  return (unsigned)backtrace(found, HERE_MAX) - 1; /* less this one */
}
