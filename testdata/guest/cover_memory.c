/* Memory by address and by array, of this process and of others. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cover.h"

const struct mt_cuda_pool_props cover_pool = {.type = 1, .location_type = 1};
const struct mt_cuda_pool_props cover_pool_share = {.type = 1, .handle_types = 1, .location_type = 1};

enum { NO_MEMORY = 2 };

void cover_plain(void) {
  static char own[4][4096] __attribute__((aligned(4096)));
  uint64_t a, b, c, left;
  size_t pitch, room;
  void *h, *g;
  DO(cuMemAlloc_v2, &a, 1000);
  DO(cuMemAlloc_v2, &left, 777);
  DO(cuMemAllocPitch_v2, &b, &pitch, 1000, 7, 16);
  DO(cuMemAllocManaged, &c, 30000, 1);
  DO(cuMemAllocHost_v2, &h, 5000);
  DO(cuMemHostAlloc, &g, 6000, 0);
  DO(cuMemHostRegister_v2, own[0], 4096, 0);
  DO(cuMemHostRegister, own[2], 3000, 0);
  FAILS(cuMemAlloc_v2, NO_MEMORY, &left, (size_t)1 << 45);
  DO(cuMemFree_v2, a);
  DO(cuMemAlloc_v2, &a, 1001); /* where the first one was, perhaps */
  DO(cuMemFree_v2, b);
  DO(cuMemFree_v2, c);
  DO(cuMemFree_v2, 0);
  DO(cuMemFreeHost, h);
  DO(cuMemFreeHost, NULL);
  DO(cuMemGetInfo_v2, &pitch, &room);
  DO(cuMemHostUnregister, own[0]);
  DO(cuMemAllocManaged, &c, 31000, 1);
  DO(cuMemAllocHost_v2, &h, 5001);
}

void cover_async(void) {
  uint64_t block[6], pool, own;
  void *made, *stream;
  HELP(cuStreamCreate, &stream, 1);
  HELP(cuDeviceGetDefaultMemPool, &own, 0);
  DO(cuMemAllocAsync, &block[0], 1500, stream);
  DO(cuMemAllocAsync_ptsz, &block[1], 2500, NULL);
  DO(cuMemPoolCreate, &made, &cover_pool);
  pool = (uint64_t)made;
  DO(cuMemAllocFromPoolAsync, &block[2], 3500, made, stream);
  DO(cuMemAllocFromPoolAsync_ptsz, &block[3], 40 * MIB, made, stream);
  DO(cuMemAllocAsync, &block[4], 33 * MIB, NULL);
  FAILS(cuMemAllocAsync, NO_MEMORY, &block[5], (size_t)1 << 44, stream);
  DO(cuMemFreeAsync, block[0], stream);
  DO(cuMemFreeAsync_ptsz, block[3], stream);
  DO(cuMemFree_v2, block[4]);
  DO(cuMemPoolTrimTo, pool, 0);
  DO(cuMemPoolTrimTo, own, 0);
  DO(cuMemPoolDestroy, made); /* its last block lives on */
  DO(cuMemFreeAsync, block[2], stream);
  DO(cuMemAllocAsync, &block[0], 4500, stream);
  DO(cuMemPoolCreate, &made, &cover_pool);
  DO(cuMemAllocFromPoolAsync, &block[2], 5500, made, stream);
}

static uint64_t array3d(size_t width, size_t height, size_t depth, int format, unsigned channels, unsigned flags) {
  const struct mt_cuda_array3d shape = {width, height, depth, format, channels, flags};
  void *array;
  DO(cuArray3DCreate_v2, &array, &shape);
  return (uint64_t)array;
}

static void mipmap(size_t width, size_t height, size_t depth, int format, unsigned channels, unsigned flags,
                   unsigned levels, int keep) {
  const struct mt_cuda_array3d shape = {width, height, depth, format, channels, flags};
  void *array;
  DO(cuMipmappedArrayCreate, &array, &shape, levels);
  if (!keep) DO(cuMipmappedArrayDestroy, array);
}

void cover_arrays(void) {
  const struct mt_cuda_array flat = {100, 30, 0x20, 4}, line = {1000, 0, 0x01, 1};
  void *a, *b;
  DO(cuArrayCreate_v2, &a, &flat);
  DO(cuArrayCreate_v2, &b, &line);
  DO(cuArrayDestroy, a);
  static const int formats[] = {0x01, 0x02, 0x03, 0x08, 0x09, 0x0a, 0x10, 0x20};
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    for (unsigned channels = 1; channels <= 4; channels *= 2)
      DO(cuArrayDestroy, (void *)array3d(33, 17, i % 3, formats[i], channels, 0));
  array3d(64, 64, 6, 0x10, 2, 0x04); /* a cube */
  array3d(64, 32, 5, 0x20, 1, 0x01); /* layers */
  mipmap(64, 64, 0, 0x01, 4, 0, 3, 0);
  mipmap(37, 5, 3, 0x20, 1, 0, 6, 0);
  mipmap(16, 16, 16, 0x20, 2, 0, 5, 1);
  mipmap(40, 20, 7, 0x02, 2, 0x01, 4, 0); /* layers keep their number */
  mipmap(8, 4, 0, 0x20, 1, 0, 20, 0);     /* more levels than there are */
}

static int other_api(size_t size) {
  int fd = memfd_create("other", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, (off_t)size)) abort();
  return fd;
}

/* The structure as CUDA 13 has it, with room at its end. */
void *cover_make_external(size_t size) {
  static union {
    struct mt_cuda_external desc;
    char whole[104];
  } of;
  memset(&of, 0, sizeof of);
  of.desc = (struct mt_cuda_external){.type = 1, .handle.fd = other_api(size), .size = size};
  return &of;
}

void cover_external(void) {
  static const union {
    struct mt_cuda_external_buffer desc;
    char whole[96];
  } whole = {{.size = MIB}}, inner = {{.offset = 5000, .size = 1000}};
  static const union {
    struct mt_cuda_external_mipmap desc;
    char whole[128];
  } levels = {{.offset = 4096, .array = {64, 64, 0, 0x01, 1, 0}, .levels = 3}};
  void *memory, *mipmap;
  uint64_t a, b;
  DO(cuImportExternalMemory, &memory, cover_make_external(MIB));
  DO(cuExternalMemoryGetMappedBuffer, &a, memory, &whole.desc);
  DO(cuExternalMemoryGetMappedBuffer, &b, memory, &inner.desc);
  DO(cuExternalMemoryGetMappedMipmappedArray, &mipmap, memory, &levels.desc);
  DO(cuDestroyExternalMemory, memory);
  DO(cuMemFree_v2, a);
  DO(cuMipmappedArrayDestroy, mipmap);
  DO(cuImportExternalMemory, &memory, cover_make_external(MIB)); /* ends with its context */
}

void cover_imports(void) {
  const struct cover_offer *o = cover_peer_offer();
  uint64_t a, again, b, handle, va, team;
  void *pool;
  DO(cuIpcOpenMemHandle_v2, &a, o->device[0], 1);
  DO(cuIpcOpenMemHandle_v2, &again, o->device[0], 1);
  DO(cuIpcOpenMemHandle, &b, o->device[1], 1);
  DO(cuIpcCloseMemHandle, a);
  DO(cuIpcCloseMemHandle, b);
  DO(cuIpcCloseMemHandle, again);
  DO(cuIpcOpenMemHandle_v2, &a, o->device[1], 1); /* ends with its context */
  DO(cuMemImportFromShareableHandle, &handle, (void *)(intptr_t)o->memory, 1);
  DO(cuMemAddressReserve, &va, 8 * MIB, 0, 0, 0);
  DO(cuMemMap, va, 4 * MIB, 0, handle, 0);
  DO(cuMemRelease, handle);
  DO(cuMemUnmap, va, 4 * MIB);
  DO(cuMemImportFromShareableHandle, &team, (void *)(intptr_t)o->team, 1);
  DO(cuMemMap, va, 2 * MIB, 0, team, 0);
  DO(cuMemUnmap, va, 2 * MIB);
  DO(cuMemRelease, team);
  DO(cuMemAddressFree, va, 8 * MIB);
  DO(cuMemPoolImportFromShareableHandle, &pool, (void *)(intptr_t)o->pool, 1, 0);
  DO(cuMemPoolImportPointer, &a, pool, (void *)o->block);
  DO(cuMemPoolDestroy, pool);
  DO(cuMemFreeAsync, a, NULL);
  close(o->memory);
  close(o->team);
  close(o->pool);
}
