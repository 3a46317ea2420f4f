/* Sizes of arrays against counting: every element of every level is visited, every block and every chroma sample is
 * added by itself. */
#include "hooks/array.h"

#include "check.h"

enum {
  CUDA_ARRAY3D_LAYERED = 0x01,
  CUDA_ARRAY3D_CUBEMAP = 0x04,
  CUDA_ARRAY3D_SPARSE = 0x40,
  CUDA_ARRAY3D_DEFERRED_MAPPING = 0x80
};

static size_t at_least_one(size_t n) { return n ? n : 1; }

/* A level's extent, halved one step at a time. */
static struct mt_cuda_array3d level_of(struct mt_cuda_array3d a, unsigned level) {
  for (; level; level--) {
    a.width = at_least_one(a.width / 2);
    a.height = a.height ? at_least_one(a.height / 2) : 0;
    if (!(a.flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP))) a.depth = a.depth ? at_least_one(a.depth / 2) : 0;
  }
  return a;
}

/* How many levels CUDA makes at most: until nothing is left to halve. */
static unsigned useful_levels(struct mt_cuda_array3d a) {
  unsigned n = 1;
  size_t largest = a.width > a.height ? a.width : a.height;
  if (!(a.flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) && a.depth > largest) largest = a.depth;
  while (largest >>= 1) n++;
  return n;
}

static uint64_t count_elements(const struct mt_cuda_array3d *a, uint64_t bytes) {
  uint64_t sum = 0;
  for (size_t z = 0; z < at_least_one(a->depth); z++)
    for (size_t y = 0; y < at_least_one(a->height); y++)
      for (size_t x = 0; x < a->width; x++) sum += bytes;
  return sum;
}

static uint64_t count_levels(const struct mt_cuda_array3d *a, uint64_t bytes, unsigned levels) {
  uint64_t sum = 0;
  unsigned useful = useful_levels(*a);
  for (unsigned i = 0; i < levels && i < useful; i++) {
    const struct mt_cuda_array3d level = level_of(*a, i);
    sum += count_elements(&level, bytes);
  }
  return sum;
}

static const struct mt_cuda_array3d shapes[] = {
    {.width = 1},
    {.width = 1000},
    {.width = 33, .height = 17},
    {.width = 1, .height = 64},
    {.width = 37, .height = 5, .depth = 3},
    {.width = 16, .height = 16, .depth = 16},
    {.width = 40, .height = 20, .depth = 7, .flags = CUDA_ARRAY3D_LAYERED},
    {.width = 50, .depth = 4, .flags = CUDA_ARRAY3D_LAYERED},
    {.width = 64, .height = 64, .depth = 6, .flags = CUDA_ARRAY3D_CUBEMAP},
    {.width = 8, .height = 8, .depth = 12, .flags = CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED},
    {.width = 2, .height = 2, .depth = 100},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void plain_formats(void) {
  static const struct {
    int format;
    unsigned bytes;
  } formats[] = {{0x01, 1}, {0x02, 2}, {0x03, 4}, {0x08, 1}, {0x09, 2}, {0x0a, 4}, {0x10, 2}, {0x20, 4}};
  for (int i = 0; i < SHAPES; i++)
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
      for (unsigned channels = 1; channels <= 4; channels *= 2) {
        struct mt_cuda_array3d a = shapes[i];
        a.format = formats[f].format;
        a.channels = channels;
        const uint64_t bytes = (uint64_t)formats[f].bytes * channels;
        CHECK_EQ(mt_array3d_bytes(&a), count_elements(&a, bytes));
        for (unsigned levels = 1; levels <= 12; levels++)
          CHECK_EQ(mt_mipmap_bytes(&a, levels), count_levels(&a, bytes, levels));
        CHECK_EQ(mt_mipmap_bytes(&a, 4000000000u), count_levels(&a, bytes, 64));
      }
  const struct mt_cuda_array flat = {100, 30, 0x20, 4}, line = {1000, 0, 0x01, 1};
  CHECK_EQ(mt_array_bytes(&flat), 100 * 30 * 16);
  CHECK_EQ(mt_array_bytes(&line), 1000);
}

/* The format says the number of channels, which the description repeats. */
static void normalized_formats(void) {
  static const unsigned channels[] = {1, 2, 4};
  for (int sign = 0; sign < 2; sign++)
    for (unsigned bytes = 1; bytes <= 2; bytes++)
      for (unsigned i = 0; i < 3; i++) {
        const struct mt_cuda_array3d a = {10, 10, 0, 0xc0 + sign * 6 + (int)(bytes - 1) * 3 + (int)i, channels[i], 0};
        CHECK_EQ(mt_array3d_bytes(&a), 100 * bytes * channels[i]);
      }
}

/* Blocks of four by four elements, also where an edge cuts them. */
static void compressed_formats(void) {
  static const struct {
    int format;
    unsigned bytes;
  } formats[] = {{0x91, 8}, {0x92, 8},  {0x93, 16}, {0x94, 16}, {0x95, 16}, {0x96, 16}, {0x97, 8},
                 {0x98, 8}, {0x99, 16}, {0x9a, 16}, {0x9b, 16}, {0x9c, 16}, {0x9d, 16}, {0x9e, 16}};
  for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
    for (size_t width = 1; width <= 13; width += 3)
      for (size_t height = 1; height <= 9; height += 4) {
        uint64_t blocks = 0;
        for (size_t y = 0; y < height; y += 4)
          for (size_t x = 0; x < width; x += 4) blocks++;
        const struct mt_cuda_array3d a = {width, height, 3, formats[f].format, 4, CUDA_ARRAY3D_LAYERED};
        CHECK_EQ(mt_array3d_bytes(&a), 3 * blocks * formats[f].bytes);
      }
}

/* One luma sample for each element; two chroma samples for each patch of so many by so many elements; a fourth channel
 * for each element where there is one. */
static void video_formats(void) {
  enum { WIDTH = 12, HEIGHT = 6 };
  static const struct {
    int format;
    unsigned bytes, across, down, fourth;
  } formats[] = {
      {0xb0, 1, 2, 2, 0}, {0x9f, 2, 2, 2, 0}, {0xa1, 2, 2, 2, 0}, {0xa2, 1, 2, 1, 0}, {0xa3, 2, 2, 1, 0},
      {0xa4, 2, 2, 1, 0}, {0xa5, 1, 2, 1, 0}, {0xa6, 2, 2, 1, 0}, {0xa7, 2, 2, 1, 0}, {0xa8, 1, 1, 1, 1},
      {0xb1, 2, 1, 1, 1}, {0xb2, 1, 1, 1, 0}, {0xb3, 2, 1, 1, 0}, {0xb4, 1, 1, 1, 0}, {0xb5, 2, 1, 1, 0},
      {0x51, 1, 2, 1, 0}, {0x52, 1, 1, 1, 1}, {0x53, 1, 2, 2, 0}, {0x54, 2, 2, 2, 0}, {0x55, 1, 2, 1, 0},
      {0x56, 2, 2, 1, 0}, {0x57, 1, 1, 1, 0}, {0x58, 2, 1, 1, 0}, {0x59, 1, 2, 2, 0}, {0x5a, 2, 2, 2, 0},
      {0x5b, 1, 2, 1, 0}, {0x5c, 2, 2, 1, 0}, {0x5d, 1, 1, 1, 0}, {0x5e, 2, 1, 1, 0},
  };
  for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
    uint64_t samples = 0;
    for (unsigned y = 0; y < HEIGHT; y++)
      for (unsigned x = 0; x < WIDTH; x++)
        samples += 1 + formats[f].fourth + (x % formats[f].across || y % formats[f].down ? 0 : 2);
    const struct mt_cuda_array3d a = {WIDTH, HEIGHT, 0, formats[f].format, 3, 0};
    CHECK_EQ(mt_array3d_bytes(&a), samples * formats[f].bytes);
  }
  const struct mt_cuda_array3d words[] = {{WIDTH, HEIGHT, 0, 0x50, 4, 0},
                                          {WIDTH, HEIGHT, 0, 0xa9, 4, 0}}; /* three times ten bits and two */
  for (int i = 0; i < 2; i++) CHECK_EQ(mt_array3d_bytes(&words[i]), WIDTH * HEIGHT * 4);
}

/* The runtime counts bits, and must come to what the driver is told. */
static void runtime_channels(void) {
  static const struct mt_cuda_channels channels[] = {{8, 0, 0, 0, 1}, {16, 16, 0, 0, 0}, {32, 32, 32, 32, 2}};
  static const unsigned bytes[] = {1, 4, 16};
  for (int i = 0; i < SHAPES; i++)
    for (int c = 0; c < 3; c++)
      for (unsigned levels = 1; levels < 6; levels++) {
        const struct mt_cuda_extent extent = {shapes[i].width, shapes[i].height, shapes[i].depth};
        CHECK_EQ(mt_channels_bytes(&channels[c], extent, levels, shapes[i].flags),
                 count_levels(&shapes[i], bytes[c], levels));
      }
}

static void without_memory(void) {
  const struct mt_cuda_array3d sparse = {512, 512, 0, 0x20, 1, CUDA_ARRAY3D_SPARSE},
                               deferred = {512, 512, 0, 0x20, 1, CUDA_ARRAY3D_DEFERRED_MAPPING},
                               none = {0, 0, 0, 0x20, 1, 0};
  const struct mt_cuda_channels floats = {32, 0, 0, 0, 2}, wrong = {-8, 0, 0, 0, 1};
  CHECK_EQ(mt_array3d_bytes(&sparse), 0);
  CHECK_EQ(mt_mipmap_bytes(&deferred, 3), 0);
  CHECK_EQ(mt_array3d_bytes(&none), 0);
  CHECK_EQ(mt_array3d_bytes(0), 0);
  CHECK_EQ(mt_array_bytes(0), 0);
  CHECK_EQ(mt_channels_bytes(0, (struct mt_cuda_extent){1, 1, 1}, 1, 0), 0);
  CHECK_EQ(mt_channels_bytes(&floats, (struct mt_cuda_extent){512, 512, 0}, 1, CUDA_ARRAY3D_SPARSE), 0);
  CHECK_EQ(mt_channels_bytes(&wrong, (struct mt_cuda_extent){1, 1, 1}, 1, 0), 0);
}

/* Tiles at different places have different keys, none of which is an address; what does not say the place does not
 * matter. */
static void tile_keys(void) {
  enum { ACROSS = 16, LEVELS = 3 };
  static uint64_t keys[ACROSS * ACROSS * LEVELS * 2 + LEVELS];
  size_t n = 0;
  for (uint64_t array = 0x5000; array <= 0x6000; array += 0x1000)
    for (unsigned level = 0; level < LEVELS; level++)
      for (unsigned y = 0; y < ACROSS; y++)
        for (unsigned x = 0; x < ACROSS; x++) {
          struct mt_cuda_tiles t = {
              .resource = array,
              .at.level = {.level = level, .x = x * 128, .y = y * 128, .width = 128, .height = 128, .depth = 1},
              .operation = 1,
              .handle = 7};
          keys[n++] = mt_tile_key(&t);
          t.operation = 2, t.handle = 0, t.offset = 65536;
          CHECK_EQ(mt_tile_key(&t), keys[n - 1]);
        }
  for (unsigned layer = 0; layer < LEVELS; layer++) {
    const struct mt_cuda_tiles tail = {
        .resource = 0x5000, .subresource_type = 1, .at.tail = {.layer = layer, .offset = 0, .size = 65536}};
    keys[n++] = mt_tile_key(&tail);
  }
  size_t same = 0, low = 0;
  for (size_t i = 0; i < n; i++) {
    low += !(keys[i] >> 63);
    for (size_t j = 0; j < i; j++) same += keys[i] == keys[j];
  }
  CHECK_EQ(same, 0);
  CHECK_EQ(low, 0);
}

int main(void) {
  static const struct check_case cases[] = {
      {"plain formats", plain_formats},
      {"normalized formats", normalized_formats},
      {"compressed formats", compressed_formats},
      {"video formats", video_formats},
      {"runtime channels", runtime_channels},
      {"without memory", without_memory},
      {"tile keys", tile_keys},
  };
  return check_main("array", cases, sizeof cases / sizeof *cases);
}
