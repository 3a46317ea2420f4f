/* What single calls leave as it was. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>

#include "manners.h"

/* errno after a call that succeeded is the program's business: many test it without looking at the result. */
static void keeps_errno(void) {
  uint64_t p, handle;
  void *host;
  int wrong = 0;
  size_t pitch;
  static char own[8192] __attribute__((aligned(4096)));
  start_cuda();
#define KEEPS(call)                                                    \
  for (int i = 0; i < 3; i++) {                                        \
    errno = 4711;                                                      \
    int result = call;                                                 \
    if (errno != 4711) wrong++, printf("%s sets errno\n", #call);      \
    if (result && i == 0) printf("%s gives %d\n", #call, result);      \
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
}

static void address_space(void) {
  start_cuda();
  allocate(1000, 20000);
}

const struct mode calls[] = {{"plain", begin}, {"errno", keeps_errno}, {"as", address_space}, {NULL, NULL}};
