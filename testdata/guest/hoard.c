/* Holds so many blocks of 512 bytes at once and more, gives the second half back one by one, and asks for more than
 * there is:
 *
 *   hoard BLOCKS
 *
 * Prints the greatest size of its own memory (RssAnon, in KiB) while it did so. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda.h"

int cuDevicePrimaryCtxRetain(void **context, int device);

#define SIZE 512u
#define LOOK_EVERY 10000

static long own_memory(void) {
  char text[4096];
  int fd = open("/proc/self/status", O_RDONLY);
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) exit(3);
  text[n] = 0;
  const char *line = strstr(text, "RssAnon:");
  return line ? atol(line + 8) : 0;
}

int main(int argc, char **argv) {
  long blocks = argc > 1 ? atol(argv[1]) : 0, most = 0;
  void *context;
  uint64_t *held = malloc((size_t)blocks * sizeof *held), too_much;
  if (!held || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
  for (long i = 0; i < 2 * blocks; i++) {
    long now = i % LOOK_EVERY ? 0 : own_memory();
    if (now > most) most = now;
    if (i < blocks ? cuMemAlloc_v2(&held[i], SIZE) : i % 2 && cuMemFree_v2(held[i - blocks])) return 2;
  }
  if (cuMemAlloc_v2(&too_much, (size_t)1 << 41) != 2) return 4;
  printf("%ld\n", most);
  return 0;
}
