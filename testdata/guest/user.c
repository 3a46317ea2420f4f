/* A library that uses the CUDA runtime, linked or built in. */
#include "cuda.h"

__attribute__((visibility("default"))) int use_runtime(size_t size);
__attribute__((visibility("default"))) int last_error(void);

int use_runtime(size_t size) {
  void *p;
  int result = cudaMalloc(&p, size);
  return result ? result : cudaFree(p);
}

int last_error(void) { return cudaGetLastError(); }
