/* What is left: errors, and libraries that come and go. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "endings.h"

/* errno after a call that succeeded is the program's business: many test it without looking at the result. */
static int error_numbers(void) {
  uint64_t p, handle;
  void *host;
  int wrong = 0;
  size_t pitch;
  static char own[8192] __attribute__((aligned(4096)));
  start_cuda();
#define KEEPS(call)                                               \
  for (int i = 0; i < 3; i++) {                                   \
    errno = 4711;                                                 \
    int result = call;                                            \
    if (errno != 4711) wrong++, printf("%s sets errno\n", #call); \
    if (result && i == 0) printf("%s gives %d\n", #call, result); \
  }
  KEEPS(cuMemAlloc_v2(&p, 512));
  KEEPS(cuMemAlloc_v2(&p, (size_t)1 << 50));
  KEEPS(cuMemAllocManaged(&p, 512, 1));
  KEEPS(cuMemAllocHost_v2(&host, 512));
  KEEPS(cuMemFreeHost((void *)16));
  KEEPS(cuMemHostAlloc(&host, 512, 0));
  KEEPS(cuMemAllocAsync(&p, 512, NULL));
  KEEPS(cuMemFreeAsync(16, NULL));
  KEEPS(cuMemAllocPitch_v2(&p, &pitch, 100, 10, 4));
  KEEPS(cuMemFree_v2(16));
  KEEPS(cuMemFree_v2(0));
  KEEPS(cuMemCreate(&handle, 2 << 20, NULL, 0));
  KEEPS(cuMemRelease(16));
  KEEPS(cuMemHostRegister_v2(own, sizeof own, 0));
  KEEPS(cuMemHostUnregister(own));
  printf("%d wrong\n", wrong);
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

/* A thread that reads the time stamp counter is killed from then on. */
static int forbid_counter(void) { return prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0); }

static int no_counter(void) {
  if (forbid_counter()) return 1;
  begin();
  return ok();
}

static int no_counter_later(void) {
  begin();
  await_recorder();
  if (forbid_counter()) return 1;
  take(OWN_SIZE, 1000);
  return ok();
}

const struct mode odds[] = {{"errno", error_numbers},
                            {"no-counter", no_counter},
                            {"no-counter-later", no_counter_later},
                            {"last-error", last_errors},
                            {"dlclose", load_and_unload},
                            {"dlmopen", other_namespace},
                            {NULL, NULL}};
