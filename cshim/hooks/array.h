/* Bytes of arrays, as far as their shape determines them: the driver's tiling is undocumented. */
#pragma once

#include <stdint.h>

#include "hooks/abi.h"

/* Bytes of an array, 0 for one without memory of its own (sparse, deferred mapping) and for a missing description. */
uint64_t mt_array_bytes(const struct mt_cuda_array *array);
uint64_t mt_array3d_bytes(const struct mt_cuda_array3d *array);

/* Bytes of a mipmapped array: the sum over its levels. */
uint64_t mt_mipmap_bytes(const struct mt_cuda_array3d *array, unsigned levels);

/* The same for the runtime's description: bits of each channel, extent in elements. */
uint64_t mt_channels_bytes(const struct mt_cuda_channels *channels, struct mt_cuda_extent extent, unsigned levels,
                           unsigned flags);

/* A key for the part of an array that a tile covers. The top bit distinguishes it from an address. */
uint64_t mt_tile_key(const struct mt_cuda_tiles *tiles);
