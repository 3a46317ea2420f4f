/* A plug-in. SHAPE makes its code different: at the same address of another build lies another instruction of a frame
 * of another size. */
#include <stddef.h>

__attribute__((visibility("default"))) int plug(int (*call)(size_t), int depth);

static __attribute__((noinline)) int level(int (*call)(size_t), int depth) {
  volatile char room[40 + 56 * SHAPE];
  room[SHAPE] = (char)depth;
#if SHAPE % 2
  volatile long spilled[3] = {depth, depth + 1, depth + 2};
  int below = depth > 0 ? level(call, depth - 1) : call(100 + SHAPE);
  return below + (spilled[1] != depth + 1) + (room[SHAPE] != (char)depth);
#else
  int below = depth > 0 ? level(call, depth - 1) + level(call, depth / 4 - 1) : call(200 + SHAPE);
  return below + (room[SHAPE] != (char)depth);
#endif
}

int plug(int (*call)(size_t), int depth) { return 10 * SHAPE + level(call, depth); }
