#define _GNU_SOURCE
#include "hooks/array.h"

#include <stdbool.h>

#include "hooks/hooks.h"
#include "spool/ring.h"

enum {
  CUDA_ARRAY3D_CUBEMAP = 0x04,
  CUDA_ARRAY3D_LAYERED = 0x01,
  CUDA_ARRAY3D_SPARSE = 0x40,
  CUDA_ARRAY3D_DEFERRED_MAPPING = 0x80
};

/* Bits of one element, by CUarray_format. The size of plain formats is that of a channel; that of video formats
 * includes their chroma planes, and their channels count as one. */
static unsigned element_bits(int format, unsigned channels) {
  switch (format) {
    case 0x01: case 0x08:
      return 8 * channels;
    case 0x02: case 0x09: case 0x10:
      return 16 * channels;
    case 0x03: case 0x0a: case 0x20:
      return 32 * channels;
    case 0x50: /* 10-10-10-2 */
    case 0xa8: case 0xa9: case 0x52: /* 4:4:4 packed, with a fourth channel */
      return 32;
    case 0xb1:
      return 64;
    case 0xb0: case 0x53: case 0x59: /* 4:2:0, 8 bits */
      return 12;
    case 0x9f: case 0xa1: case 0x54: case 0x5a: /* 4:2:0, 16 bits */
      return 24;
    case 0xa2: case 0xa5: case 0x51: case 0x55: case 0x5b: /* 4:2:2, 8 bits */
      return 16;
    case 0xa3: case 0xa4: case 0xa6: case 0xa7: case 0x56: case 0x5c: /* 4:2:2, 16 bits */
      return 32;
    case 0xb2: case 0xb4: case 0x57: case 0x5d: /* 4:4:4, 8 bits */
      return 24;
    case 0xb3: case 0xb5: case 0x58: case 0x5e: /* 4:4:4, 16 bits */
      return 48;
  }
  if (format >= 0xc0 && format <= 0xcb) { /* normalized integers: three of 8 bits, three of 16, signed likewise */
    static const unsigned channels_of[] = {1, 2, 4};
    unsigned n = (unsigned)format - 0xc0;
    return channels_of[n % 3] * (n / 3 % 2 ? 16 : 8);
  }
  return 8 * channels;
}

/* Bytes of a 4x4 block of a compressed format, 0 for the others. */
static unsigned compressed_block(int format) {
  if (format < 0x91 || format > 0x9e) return 0;
  return format == 0x91 || format == 0x92 || format == 0x97 || format == 0x98 ? 8 : 16;
}

static uint64_t level_bytes(uint64_t width, uint64_t height, uint64_t depth, int format, unsigned bits) {
  if (!height) height = 1;
  if (!depth) depth = 1;
  unsigned block = compressed_block(format);
  if (block) return (width + 3) / 4 * ((height + 3) / 4) * depth * block;
  return (width * height * depth * bits + 7) / 8;
}

static uint64_t sum(uint64_t width, uint64_t height, uint64_t depth, int format, unsigned bits, unsigned levels,
                    unsigned flags) {
  bool layers = flags & (CUDA_ARRAY3D_LAYERED |
                         CUDA_ARRAY3D_CUBEMAP); /* depth counts them, and it stays the same on every level */
  uint64_t total = 0;
  if (flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) return 0;
  for (unsigned i = 0; i < levels && i < 64; i++) {
    total += level_bytes(width, height, depth, format, bits);
    if (width <= 1 && height <= 1 && (layers || depth <= 1))
      break; /* CUDA creates no more levels than that */
    width = width > 1 ? width / 2 : 1;
    if (height > 1) height /= 2;
    if (depth > 1 && !layers) depth /= 2;
  }
  return total;
}

uint64_t mt_array_bytes(const struct mt_cuda_array *a) {
  return a ? level_bytes(a->width, a->height, 0, a->format, element_bits(a->format, a->channels)) : 0;
}

uint64_t mt_mipmap_bytes(const struct mt_cuda_array3d *a, unsigned levels) {
  return a ? sum(a->width, a->height, a->depth, a->format, element_bits(a->format, a->channels), levels, a->flags) : 0;
}

uint64_t mt_array3d_bytes(const struct mt_cuda_array3d *a) { return mt_mipmap_bytes(a, 1); }

uint64_t mt_channels_bytes(const struct mt_cuda_channels *c, struct mt_cuda_extent extent, unsigned levels,
                           unsigned flags) {
  if (!c || c->x < 0 || c->y < 0 || c->z < 0 || c->w < 0) return 0;
  return sum(extent.width, extent.height, extent.depth, 0,
             (unsigned)c->x + (unsigned)c->y + (unsigned)c->z + (unsigned)c->w, levels, flags);
}

uint64_t mt_tile_key(const struct mt_cuda_tiles *t) {
  const bool tail = t->subresource_type == 1;
  const uint64_t words[] = {
      t->resource,
      tail ? 1u + ((uint64_t)t->at.tail.layer << 32) : ((uint64_t)t->at.level.level << 32 | t->at.level.layer) << 1,
      tail ? t->at.tail.offset : (uint64_t)t->at.level.x << 32 | t->at.level.y,
      tail ? 0 : t->at.level.z,
  };
  uint64_t hash = 0;
  for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
    hash = (hash ^ words[i]) * 0x9E3779B97F4A7C15ull, hash ^= hash >> 29;
  return hash | 1ull << 63;
}

enum { NUMBERED = 64 }; /* changes of one call that have their numbers from before it; further ones come after it */

/* Every change maps, unmaps, or both: it may end an earlier mapping of the tile, whose handle another thread may get at
 * once. So its number is drawn before the real call. A tile's memory is that of its handle. */
static struct mt_outcome tile_changed(const struct mt_cuda_tiles *tile, int status) {
  bool map = tile && tile->operation == 1 && tile->handle; /* mapping no handle is unmapping */
  return (struct mt_outcome){.kind = map ? MT_MAP : MT_UNMAP,
                             .mem = MT_MEM_VMM, .addr = tile ? mt_tile_key(tile) : 0, .handle = map ? tile->handle : 0,
                             .status = status, .device = MT_HOST};
}

static unsigned draw_numbers(const struct mt_call *call, unsigned count, uint64_t numbers[NUMBERED]) {
  unsigned drawn = 0;
  for (; call->self && drawn + 1 < count && drawn < NUMBERED; drawn++) numbers[drawn] = mt_seq_draw();
  return drawn;
}

static int tiles_changed(struct mt_call *call, const struct mt_cuda_tiles *tiles, unsigned count,
                         const uint64_t *numbers, unsigned drawn, int status) {
  if (!call->self) return status;
  for (unsigned i = 1; i < count && (!status || i <= drawn); i++) {
    struct mt_outcome o = tile_changed(tiles ? &tiles[i] : NULL, status);
    mt_call_record_extra_at(call->self, call->id, call->caller, &o, i <= drawn ? numbers[i - 1] : 0);
  }
  struct mt_outcome first = tile_changed(count ? tiles : NULL, status);
  mt_driver_close(call, &first);
  return status;
}

#define MT_TILES(symbol)                                                                            \
  MT_HOOKED(symbol, (struct mt_cuda_tiles *tiles, unsigned count, void *stream)) {                  \
    MT_HOOKED_REAL(symbol);                                                                         \
    MT_HOOKED_OPEN(symbol, driver, 1);                                                              \
    uint64_t numbers[NUMBERED];                                                                     \
    unsigned drawn = draw_numbers(&call, count, numbers);                                           \
    return tiles_changed(&call, tiles, count, numbers, drawn, real(tiles, count, stream));          \
  }
MT_TILES(cuMemMapArrayAsync)
MT_TILES(cuMemMapArrayAsync_ptsz)
