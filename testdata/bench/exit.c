/* How long a process takes to end: reports many blocks, then prints the monotonic clock in nanoseconds as the last thing it does. Whoever waits for it
 * subtracts.
 *
 *   exit EVENTS */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *, int64_t, uint64_t, uint64_t, uint16_t);

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  long events = atol(argv[1]);
  for (long i = 0; i < events; i++) {
    void *block = (void *)(uint64_t)((i / 2 % 4096 + 1) * 512);
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(block, i & 1 ? -512 : 512, 512, 2 << 20, 1);
    if (i % 1000 == 999) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); /* 200 000 a second, as a busy program */
  }
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  printf("%lld\n", (long long)t.tv_sec * 1000000000 + t.tv_nsec);
  fflush(stdout);
  return 0;
}
