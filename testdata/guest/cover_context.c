/* Contexts and code: what they own ends with them, whoever allocated it. */
#include <stdio.h>
#include <stdlib.h>

#include "cover.h"

/* One of each kind that a context owns, sizes told apart by unit, and some that it does not own. */
static void fill(size_t unit) {
  static char own[8][4096] __attribute__((aligned(4096)));
  static unsigned next;
  const struct mt_cuda_array flat = {unit, 3, 0x20, 1};
  const struct mt_cuda_array3d levels = {16, unit, 0, 0x01, 1, 0};
  static const union {
    struct mt_cuda_external_buffer desc;
    char whole[96];
  } part = {{.size = 8192}};
  const int property[16] = {1, 0, 1, 0};
  uint64_t a;
  void *p;
  DO(cuMemAlloc_v2, &a, unit);
  DO(cuMemAlloc_v2, &a, unit + 1);
  DO(cuMemAllocManaged, &a, unit + 2, 1);
  DO(cuMemHostAlloc, &p, unit + 3, 0);
  DO(cuMemHostRegister_v2, own[next++ % 8], unit % 4096, 0);
  DO(cuArrayCreate_v2, &p, &flat);
  DO(cuMipmappedArrayCreate, &p, &levels, 2);
  DO(cuImportExternalMemory, &p, cover_make_external(MIB));
  DO(cuExternalMemoryGetMappedBuffer, &a, p, &part.desc);
  DO(cuMemAllocAsync, &a, unit + 4, NULL);
  DO(cuMemCreate, &a, 2 * MIB, (const void *)property, 0);
}

void cover_contexts(void) {
  uint64_t context, other;
  DO(cuCtxCreate, &context, 0, 0);
  fill(1000);
  DO(cuCtxDestroy, context);
  DO(cuCtxCreate_v2, &context, 0, 0);
  fill(1100);
  DO(cuCtxCreate_v3, &other, NULL, 0, 0, 0);
  fill(1200);
  DO(cuCtxDestroy_v2, context); /* not the current one */
  fill(1300);
  DO(cuCtxDestroy_v2, other);
  HELP(cuCtxPopCurrent_v2, &other); /* the destroyed one was below it */
  DO(cuCtxCreate_v4, &context, NULL, 0, 0);
  fill(1400);
  HELP(cuCtxAttach, &other, 0);
  DO(cuCtxDetach, context); /* one of two */
  fill(1500);
  DO(cuCtxDetach, context);
  fill(1600); /* back in the primary context */
}

static void retain(void) {
  uint64_t context;
  DO(cuDevicePrimaryCtxRetain, &context, 0);
  HELP(cuCtxSetCurrent, context);
}

void cover_green(void) {
  char resource[256] = {0};
  uint64_t context, inside;
  void *description, *green;
  HELP(cuDeviceGetDevResource, 0, resource, 1);
  HELP(cuDevResourceGenerateDesc, &description, resource, 1);
  DO(cuGreenCtxCreate, &green, description, 0, 1);
  DO(cuCtxFromGreenCtx, &context, green);
  HELP(cuCtxPushCurrent_v2, context);
  DO(cuMemAlloc_v2, &inside, 2222);
  DO(cuMemFree_v2, inside);
  DO(cuMemAlloc_v2, &inside, 3333); /* the primary context's, whose end it awaits */
  HELP(cuCtxPopCurrent_v2, &context);
  DO(cuGreenCtxDestroy, green);
  DO(cuGreenCtxCreate, &green, description, 0, 1); /* holds the primary context when nobody else does */
  DO(cuDevicePrimaryCtxRelease_v2, 0);
  DO(cuMemAlloc_v2, &inside, 4444);
  DO(cuGreenCtxDestroy, green); /* and takes it along */
  retain();
}

void cover_code(void) {
  static const char image[64] = "image";
  char *const path = "/proc/self/exe";
  void *module[4], *library, *file;
  uint64_t variable;
  size_t size;
  DO(cuModuleLoad, &module[0], path);
  DO(cuModuleLoadData, &module[1], image);
  DO(cuModuleLoadDataEx, &module[2], image, 0, NULL, NULL);
  DO(cuModuleLoadFatBinary, &module[3], image);
  DO(cuModuleGetGlobal_v2, &variable, &size, module[0], "one");
  DO(cuModuleGetGlobal_v2, &variable, &size, module[0], "one");
  DO(cuModuleGetGlobal_v2, &variable, NULL, module[1], "two");
  DO(cuModuleGetGlobal_v2, &variable, &size, module[2], "three");
  DO(cuModuleGetGlobal_v2, &variable, &size, module[2], "four");
  for (int i = 0; i < 3; i++) DO(cuModuleUnload, module[i]);
  DO(cuModuleGetGlobal_v2, &variable, &size, module[3], "five"); /* ends with its context */
  DO(cuLibraryLoadData, &library, image, NULL, NULL, 0, NULL, NULL, 0);
  DO(cuLibraryLoadFromFile, &file, path, NULL, NULL, 0, NULL, NULL, 0);
  DO(cuLibraryGetGlobal, &variable, &size, library, "one");
  DO(cuLibraryGetGlobal, &variable, NULL, file, "one");
  DO(cuLibraryUnload, library);
  DO(cuLibraryUnload, file);
}

/* The primary context's end, four ways. */
void cover_primary(void) {
  uint64_t context;
  DO(cuDevicePrimaryCtxRetain, &context, 0);
  DO(cuDevicePrimaryCtxRelease_v2, 0); /* one of two */
  fill(2000);
  DO(cuDevicePrimaryCtxReset_v2, 0);
  retain();
  fill(2100);
  DO(cuDevicePrimaryCtxReset, 0);
  retain();
  fill(2200);
  DO(cuDevicePrimaryCtxRelease, 0);
  DO(cuDevicePrimaryCtxRelease, 0);
  fill(2300);
  DO(cuDevicePrimaryCtxRelease_v2, 0); /* the last holder's */
  retain();
  fill(2400);
}
