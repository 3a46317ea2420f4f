/* A driver that hands out numbers and does nothing else, for more events a second than the null GPU reaches. SPIN is
 * how many empty rounds each call takes. A TiB is more than it has. */
#include <stdint.h>
#include <stdlib.h>

#define CONTEXT ((void *)0x1000)
#define STEP 512u

static uint64_t last = 0x700000000000ull;
static long spin;

__attribute__((constructor)) static void load(void) {
  const char *text = getenv("SPIN");
  spin = text ? atol(text) : 0;
}

static int work(void) {
  for (volatile long i = 0; i < spin; i++) continue;
  return 0;
}

#define CALL __attribute__((visibility("default")))

CALL int cuInit(unsigned flags) { return (void)flags, 0; }
CALL int cuDriverGetVersion(int *version) { return *version = 12090, 0; }
CALL int cuDeviceGetCount(int *count) { return *count = 1, 0; }
CALL int cuDevicePrimaryCtxRetain(void **context, int device) { return (void)device, *context = CONTEXT, 0; }
CALL int cuCtxSetCurrent(void *context) { return (void)context, 0; }
CALL int cuCtxGetCurrent(void **context) { return *context = CONTEXT, 0; }
CALL int cuCtxGetDevice(int *device) { return *device = 0, 0; }

CALL int cuMemAlloc_v2(uint64_t *address, size_t size) {
  if (size >> 40) return 2; /* out of memory */
  *address = __atomic_add_fetch(&last, STEP, __ATOMIC_RELAXED);
  return work();
}

CALL int cuMemFree_v2(uint64_t address) { return (void)address, work(); }
