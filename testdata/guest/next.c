/* A library that looks for the function behind itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

int allocate_next(uint64_t *out) {
  int (*call)(uint64_t *, uint64_t) = (int (*)(uint64_t *, uint64_t))dlsym(RTLD_NEXT, "cuMemAlloc_v2");
  return call ? call(out, 11008) : -1;
}
