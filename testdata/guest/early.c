/* A library that allocates before main, in its destructor, and in a handler of its own: a recorder that ends with its
 * own destructor, which runs before those of the libraries that were there first, misses what they free. Sizes: 1000 in
 * main's time, 4000 before, 5000 after. */
#include <stdlib.h>

#include "cuda.h"

static uint64_t kept;

static void use(size_t size) {
  uint64_t p;
  if (cuMemAlloc_v2(&p, size) || cuMemFree_v2(p)) abort();
}

static void in_handler(void) { use(5000); }

__attribute__((constructor)) static void before_main(void) {
  void *context;
  if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0)) abort();
  use(4000);
  if (cuMemAlloc_v2(&kept, 4001)) abort();
  atexit(in_handler);
}

__attribute__((destructor)) static void after_main(void) {
  use(5000);
  if (cuMemFree_v2(kept)) abort();
}

__attribute__((visibility("default"))) void use_early(void) { use(1000); }
