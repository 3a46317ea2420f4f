/* Somebody else's preloaded library: counts allocations and passes them on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static int calls;

int cudaMalloc(void **out, size_t size) {
  int (*next)(void **, size_t) = (int (*)(void **, size_t))dlsym(RTLD_NEXT, "cudaMalloc");
  calls++;
  return next ? next(out, size) : 999;
}

__attribute__((destructor)) static void report(void) { fprintf(stderr, "other interposer: %d calls\n", calls); }
