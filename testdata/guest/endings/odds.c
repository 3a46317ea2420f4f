/* What is left: errors, and libraries that come and go. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#include "endings.h"

static int error_numbers(void) {
  uint64_t block;
  start_cuda();
  errno = 42;
  cuMemAlloc_v2(&block, 100);
  printf("%d ", errno);
  errno = 43;
  cuMemFree_v2(block);
  printf("%d\n", errno);
  return 0;
}

static int last_errors(void) {
  void *block;
  cudaMalloc(&block, 1ull << 50);
  printf("%d ", cudaPeekAtLastError());
  cudaMalloc(&block, 10);
  cudaFree(block);
  int first = cudaGetLastError();
  printf("%d %d\n", first, cudaGetLastError());
  return 0;
}

static int load_and_unload(void) {
  for (int i = 0; i < 20; i++) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*take)(uint64_t *, size_t) = (int (*)(uint64_t *, size_t))dlsym(driver, "cuMemAlloc_v2");
    uint64_t block;
    start_cuda();
    printf("%d", take(&block, 100));
    dlclose(driver);
  }
  printf("\n");
  return 0;
}

static int other_namespace(void) {
  void *driver = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
  if (!driver) return 1;
  int (*begin_there)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
  int (*take)(uint64_t *, size_t) = (int (*)(uint64_t *, size_t))dlsym(driver, "cuMemAlloc_v2");
  uint64_t block;
  int result = begin_there(0);
  printf("%d %d\n", result, take(&block, 100));
  return 0;
}

const struct mode odds[] = {{"errno", error_numbers},
                            {"last-error", last_errors},
                            {"dlclose", load_and_unload},
                            {"dlmopen", other_namespace},
                            {NULL, NULL}};
