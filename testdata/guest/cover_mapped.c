/* Physical memory by handle: mapped at addresses, bound to multicast objects, laid under the tiles of sparse arrays. */
#include "cover.h"

static uint64_t memory(size_t size, int location) {
  const int property[16] = {1, 0, location, 0};
  uint64_t handle = 0;
  DO(cuMemCreate, &handle, size, (const void *)property, 0);
  return handle;
}

enum { DEVICE = 1, HOST = 2 };

void cover_handles(void) {
  uint64_t va, left, same, a = memory(2 * MIB, DEVICE), b = memory(4 * MIB, DEVICE), unmapped = memory(6 * MIB, DEVICE),
                           host = memory(2 * MIB, HOST);
  DO(cuMemAddressReserve, &va, 16 * MIB, 0, 0, 0);
  DO(cuMemAddressReserve, &left, 32 * MIB, 0, 0, 0);
  DO(cuMemMap, va, 2 * MIB, 0, a, 0);
  DO(cuMemMap, va + 2 * MIB, 4 * MIB, 0, b, 0);
  DO(cuMemMap, va + 8 * MIB, 4 * MIB, 0, b, 0); /* twice */
  DO(cuMemRelease, a);
  DO(cuMemRelease, unmapped);
  DO(cuMemRetainAllocationHandle, &same, (void *)(va + MIB)); /* after its release: it comes back */
  DO(cuMemUnmap, va, 6 * MIB);                                /* both mappings */
  DO(cuMemRelease, same);
  DO(cuMemRetainAllocationHandle, &same, (void *)(va + 9 * MIB));
  DO(cuMemRelease, same);
  DO(cuMemRelease, b);
  DO(cuMemUnmap, va + 8 * MIB, 4 * MIB);
  DO(cuMemAddressFree, va, 16 * MIB);
  DO(cuMemRelease, host);
  memory(10 * MIB, DEVICE); /* left over */
}

void cover_multicast(void) {
  const struct mt_cuda_multicast of = {.devices = 1, .size = 4 * MIB};
  uint64_t team, va, part = memory(4 * MIB, DEVICE);
  DO(cuMulticastCreate, &team, &of);
  HELP(cuMulticastAddDevice, team, 0);
  DO(cuMulticastBindMem, team, 0, part, 0, 2 * MIB, 0);
  DO(cuMulticastBindMem_v2, team, 0, 2 * MIB, part, 2 * MIB, 2 * MIB, 0);
  DO(cuMemAddressReserve, &va, 4 * MIB, 0, 0, 0);
  DO(cuMemMap, va, 4 * MIB, 0, team, 0);
  DO(cuMulticastUnbind, team, 0, 0, 2 * MIB);
  DO(cuMemRelease, part);
  DO(cuMulticastUnbind, team, 0, 2 * MIB, 2 * MIB); /* the memory ends here */
  DO(cuMemRelease, team);
  DO(cuMemUnmap, va, 4 * MIB); /* and the object here */
  DO(cuMemAddressFree, va, 4 * MIB);
  DO(cuMulticastCreate, &team, &of);
}

static struct mt_cuda_tiles region(void *array, unsigned x, unsigned y, unsigned width, unsigned height,
                                   uint64_t handle) {
  return (struct mt_cuda_tiles){.resource = (uint64_t)array,
                                .at.level = {.x = x, .y = y, .width = width, .height = height, .depth = 1},
                                .operation = 1,
                                .handle = handle,
                                .device_mask = 1};
}

/* Elements of four bytes: tiles of 128 by 128. */
void cover_tiled(void) {
  const struct mt_cuda_array3d shape = {512, 300, 0, 0x20, 1, 0x40}, deferred = {512, 512, 0, 0x20, 1, 0x80};
  void *array, *whole;
  uint64_t first = memory(2 * MIB, DEVICE), second = memory(2 * MIB, DEVICE), third = memory(4 * MIB, DEVICE);
  DO(cuArray3DCreate_v2, &array, &shape);
  struct mt_cuda_tiles two[2] = {region(array, 0, 0, 256, 128, first), region(array, 0, 256, 512, 44, second)};
  DO(cuMemMapArrayAsync, two, 2, NULL);
  DO(cuMemRelease, first);
  DO(cuMemRelease, second);
  two[0] = region(array, 0, 0, 256, 128, 0); /* no handle: nothing lies there any more */
  DO(cuMemMapArrayAsync_ptsz, two, 1, NULL);
  two[1] = region(array, 0, 256, 512, 44, third); /* in the place of the second */
  DO(cuMemMapArrayAsync, &two[1], 1, NULL);
  two[1] = region(array, 0, 256, 512, 44, 0);
  two[1].operation = 2;
  DO(cuMemMapArrayAsync, &two[1], 1, NULL);
  DO(cuMemMapArrayAsync, &two[1], 1, NULL); /* nothing to unmap */
  DO(cuMemRelease, third);
  DO(cuArrayDestroy, array);
  DO(cuArray3DCreate_v2, &whole, &deferred);
  third = memory(2 * MIB, DEVICE);
  two[0] = region(whole, 0, 0, 512, 512, third);
  DO(cuMemMapArrayAsync, two, 1, NULL);
  two[0].operation = 2;
  DO(cuMemMapArrayAsync, two, 1, NULL);
  DO(cuMemRelease, third);
}
