/* Runs out of device memory the way a plain CUDA program does, without any framework.
 *
 *   oom            fills the device in blocks of 64 MiB until one is refused, says so and ends with status 3
 *   oom killed     the same, and then waits to be killed
 *   oom enough     gives a block back, and gets one then
 *   oom loop N     is refused N times, for one thing each
 */
#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK (64ul << 20)

/* Attempts far apart are different matters: longer than memtrace waits for the next one. */
static void pause_long(void) { usleep(300000); }

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  void *p, *last = NULL;
  int blocks = 0, error;
  for (; !(error = cudaMalloc(&p, BLOCK)); last = p) blocks++;
  if (!strcmp(how, "loop"))
    for (int i = 1; i < atoi(argv[2]); i++) {
      pause_long();
      error = cudaMalloc(&p, BLOCK + (size_t)i);
    }
  if (!strcmp(how, "enough")) {
    cudaFree(last);
    error = cudaMalloc(&p, BLOCK);
  }
  printf("%d blocks, then error %d\n", blocks, error);
  fflush(stdout);
  if (!strcmp(how, "killed"))
    for (;;) pause();
  return 3;
}
