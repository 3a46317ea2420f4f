/* A library that names no library for the functions that it calls: it gets them from those that were loaded with it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#include "cuda.h"

__attribute__((visibility("default"))) int use_group(size_t size);

int use_group(size_t size) {
  void *p = NULL;
  int failed = cudaMalloc(&p, size) || cudaFree(p);
  printf("the library: %s, and sees %s\n", failed ? "failed" : "done",
         dlsym(RTLD_DEFAULT, "cudaMallocHost") ? "more" : "nothing");
  return failed;
}
