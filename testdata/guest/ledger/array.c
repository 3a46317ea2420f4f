/* Arrays and mipmapped arrays, and sparse ones with handles under their tiles. */
#include "ledger.h"

enum { FLOAT = 0x20, BYTE = 0x01, SPARSE = 0x40, LAYERED = 0x01, MAP = 1, UNMAP = 2 };

struct array {
  void *array;
  bool levels;
  uint64_t handle;
  int tiles; /* tiled: how far it is */
};

static uint64_t at_least_one(uint64_t n) { return n ? n : 1; }

static uint64_t array_bytes(uint64_t width, uint64_t height, uint64_t depth, uint64_t element) {
  return width * at_least_one(height) * at_least_one(depth) * element;
}

/* Each level is half as wide and high as the one before; none is added to the last, of one element. */
static uint64_t mipmap_bytes(uint64_t width, uint64_t height, unsigned levels, uint64_t element) {
  uint64_t sum = 0;
  for (unsigned i = 0; i < levels; i++) {
    sum += width * at_least_one(height) * element;
    if (width <= 1 && height <= 1) break;
    width = at_least_one(width / 2);
    if (height) height = at_least_one(height / 2);
  }
  return sum;
}

static void make_levels(struct actor *a, struct slot *s, bool runtime) {
  struct array *own = OWN(array, s);
  const struct mt_cuda_channels bytes = {8, 0, 0, 0, 1};
  size_t width = 1 + pick(a, 200), height = pick(a, 100);
  unsigned levels = 1 + pick(a, 5);
  const struct mt_cuda_array3d shape = {width, height, 0, FLOAT, 2, 0};
  own->levels = true;
  gain(a, s, 0, DRIVER, device_of(s->context), mipmap_bytes(width, height, levels, runtime ? 1 : 8), s->context);
  if (runtime)
    DO(a, cudaMallocMipmappedArray, &own->array, &bytes, (struct mt_cuda_extent){width, height, 0}, levels, 0);
  else DO(a, cuMipmappedArrayCreate, &own->array, &shape, levels);
}

static void make(struct actor *a, struct slot *s) {
  struct array *own = OWN(array, s);
  const struct mt_cuda_channels floats = {32, 32, 0, 0, 2};
  size_t width = 1 + pick(a, 1000), height = pick(a, 300), depth = height ? pick(a, 5) : 0;
  unsigned channels = 1u << pick(a, 3);
  const struct mt_cuda_array flat = {width, height, FLOAT, channels};
  const struct mt_cuda_array3d solid = {width, height, depth, BYTE, channels, 0};
  bool runtime = one_in(a, 3);
  s->context = runtime ? enter_primary(a) : enter_any(a);
  if (runtime) enter_runtime(s->context);
  own->levels = false;
  if (one_in(a, 3)) {
    make_levels(a, s, runtime);
    return;
  }
  bool three = one_in(a, 2);
  uint64_t element = runtime ? 8 : three ? channels : 4 * channels;
  gain(a, s, 0, DRIVER, device_of(s->context), array_bytes(width, height, three ? depth : 0, element), s->context);
  if (runtime && three)
    DO(a, cudaMalloc3DArray, &own->array, &floats, (struct mt_cuda_extent){width, height, depth}, 0);
  else if (runtime) DO(a, cudaMallocArray, &own->array, &floats, width, height, 0);
  else if (three) DO(a, cuArray3DCreate_v2, &own->array, &solid);
  else DO(a, cuArrayCreate_v2, &own->array, &flat);
}

static bool step(struct actor *a, struct slot *s) {
  struct array *own = OWN(array, s);
  bool runtime = one_in(a, 2);
  int context = runtime ? enter_primary(a) : enter_any(a);
  if (runtime) enter_runtime(context);
  lose(a, s, 0);
  if (own->levels && runtime) DO(a, cudaFreeMipmappedArray, own->array);
  else if (own->levels) DO(a, cuMipmappedArrayDestroy, own->array);
  else if (runtime) DO(a, cudaFreeArray, own->array);
  else DO(a, cuArrayDestroy, own->array);
  return true;
}

const struct kind arrayed = {"array", 8, make, step, NULL, NULL};

/* Tiles of four bytes an element are 128 by 128: one region of four tiles. */
static void change(struct actor *a, struct slot *s, int operation, uint64_t handle) {
  struct mt_cuda_tiles region = {.resource = (uint64_t)OWN(array, s)->array,
                                 .at.level = {.width = 256, .height = 256, .depth = 1},
                                 .operation = operation,
                                 .handle = handle,
                                 .device_mask = 1u << device_of(s->context)};
  void *stream = contexts[s->context].stream[0];
  if (one_in(a, 2)) DO(a, cuMemMapArrayAsync, &region, 1, stream);
  else DO(a, cuMemMapArrayAsync_ptsz, &region, 1, stream);
}

static void make_tiled(struct actor *a, struct slot *s) {
  const struct mt_cuda_array3d shape = {512, 300, 0, FLOAT, 1, SPARSE};
  s->context = enter_any(a);
  OWN(array, s)->tiles = 0;
  gain(a, s, 0, DRIVER, device_of(s->context), 0, s->context);
  DO(a, cuArray3DCreate_v2, &OWN(array, s)->array, &shape);
}

static void lay(struct actor *a, struct slot *s) {
  const int property[16] = {1, 0, 1, device_of(s->context)};
  gain(a, s, 1, DRIVER, device_of(s->context), 2 * MIB, NO_CONTEXT);
  DO(a, cuMemCreate, &OWN(array, s)->handle, 2 * MIB, (const void *)property, 0);
  change(a, s, MAP, OWN(array, s)->handle);
}

enum { BARE, LAID, RELEASED };

static void lift(struct actor *a, struct slot *s) {
  bool last = OWN(array, s)->tiles == RELEASED;
  if (last) lose(a, s, 1);
  one_in(a, 2) ? change(a, s, UNMAP, 0) : change(a, s, MAP, 0);
  if (last) return;
  lose(a, s, 1);
  DO(a, cuMemRelease, OWN(array, s)->handle);
}

/* Tiles that are never unmapped would keep their memory counted (docs/hooks.md). */
static void uncover(struct actor *a, struct slot *s) {
  if (OWN(array, s)->tiles == BARE) return;
  enter(a, s->context);
  lift(a, s);
  OWN(array, s)->tiles = BARE;
}

static bool step_tiled(struct actor *a, struct slot *s) {
  struct array *own = OWN(array, s);
  enter(a, s->context);
  if (own->tiles == BARE && (a->draining || one_in(a, 3))) {
    lose(a, s, 0);
    DO(a, cuArrayDestroy, own->array);
    return true;
  }
  if (own->tiles == BARE) {
    lay(a, s);
    own->tiles = LAID;
  } else if (own->tiles == LAID && one_in(a, 2)) {
    DO(a, cuMemRelease, own->handle);
    own->tiles = RELEASED;
  } else {
    lift(a, s);
    own->tiles = BARE;
  }
  return false;
}

const struct kind tiled = {"tiled", 3, make_tiled, step_tiled, uncover, NULL};
