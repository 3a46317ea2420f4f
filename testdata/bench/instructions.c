/* The hook path's instructions, counted under callgrind.
 *
 *   instructions flat|deep
 *
 * flat: events from the top of a thread, for a recording without stacks. deep: events from below 10 and 30 frames. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frames.h"
#include "instructions.h"
#include "memtrace.h"

enum {
  FIXED_FRAMES = 8
}; /* of every report: itself, frames_descend, instructions_*, main, what the C library runs before it */

int cuInit(unsigned);
int cuDeviceGet(int *, int);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(uint64_t *, size_t);
int cuMemFree_v2(uint64_t);

static void must(int status) {
  if (!status) return;
  fprintf(stderr, "CUDA error %d\n", status);
  exit(1);
}

static void driver_pair(void *nothing) {
  (void)nothing;
  uint64_t block;
  must(cuMemAlloc_v2(&block, 1 << 16));
  must(cuMemFree_v2(block));
}

static void driver(void *levels, uint64_t number) {
  (void)number;
  int32_t n = *(int32_t *)levels;
  if (n < 0) driver_pair(NULL);
  else frames_descend((unsigned)n, 0, driver_pair, NULL);
}

static void tag(void *nothing, uint64_t number) {
  static const char *const names[] = {"forward", "backward", "optimizer", "data"};
  (void)nothing;
  MEMTRACE_TAG_PUSH(names[number % 4]);
  MEMTRACE_TAG_POP();
}

static void use_device(void) {
  int device;
  void *context;
  must(cuInit(0));
  must(cuDeviceGet(&device, 0));
  must(cuDevicePrimaryCtxRetain(&context, device));
  must(cuCtxSetCurrent(context));
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  int32_t flat = -1, ten = 10 - FIXED_FRAMES, thirty = 30 - FIXED_FRAMES;
  instructions_alone();
  use_device();
  if (!strcmp(argv[1], "flat")) {
    instructions_report("framework, no stack", flat, false);
    instructions_count(&(struct instructions_case){"driver, no stack", driver, &flat});
    instructions_count(&(struct instructions_case){"tag push and pop", tag, NULL});
  } else {
    instructions_report("framework, 10 native frames", ten, false);
    instructions_report("framework, 30 native frames", thirty, false);
    instructions_report("framework, 30 native frames, stacks at random", thirty, true);
    instructions_count(&(struct instructions_case){"driver, 10 native frames", driver, &ten});
  }
  return 0;
}
