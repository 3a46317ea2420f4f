// Sparse arrays cost nothing; the handles under their tiles do, and live as long as a
// tile lies on them.
#include "cu.h"

#define TILE (64 * KIB)

static const cu_allocation_prop on_device = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}};

static uint64_t memory(size_t bytes)
{
	uint64_t handle = 0;
	CHECK_OK(cuMemCreate(&handle, bytes, &on_device, 0));
	return handle;
}

static int change(const cu_array_map *map)
{
	cu_array_map copy = *map;
	return cuMemMapArrayAsync(&copy, 1, NULL);
}

static cu_array_map region(void *array, unsigned x, unsigned y, unsigned width, unsigned height, uint64_t handle)
{
	return (cu_array_map){.resource_type = CU_RESOURCE_ARRAY, .resource = array, .operation = CU_TILES_MAP,
	                      .sparse_level = {.x = x, .y = y, .width = width, .height = height, .depth = 1},
	                      .handle = handle, .device_mask = 1};
}

// 4 bytes an element: tiles of 128 by 128. The array has 4 by 3 of them, the last row cut.
static void test_flat(void)
{
	void *array, *dense;
	cu_sparse_properties properties;
	const cu_array3d_desc desc = {512, 300, 0, 0x20, 1, CU_ARRAY_SPARSE}, plain = {512, 300, 0, 0x20, 1, 0};
	CHECK_OK(cuArray3DCreate_v2(&array, &desc));
	CHECK_EQ(used_now(), 0);
	CHECK_OK(cuArrayGetSparseProperties(&properties, array));
	CHECK(properties.tile_width == 128 && properties.tile_height == 128 && properties.tile_depth == 1);
	CHECK(properties.tail_first_level == 0 && properties.tail_bytes == 0);
	uint64_t first = memory(2 * MIB), second = memory(2 * MIB);
	cu_array_map map = region(array, 0, 0, 256, 128, first);
	CHECK_OK(change(&map));
	map = region(array, 0, 256, 512, 44, second); // the last row, to the edge
	CHECK_OK(change(&map));
	map.handle = first, map.sparse_level.height = 40;
	CHECK_EQ(change(&map), CU_INVALID_VALUE); // neither a tile nor the edge
	map = region(array, 64, 0, 128, 128, first);
	CHECK_EQ(change(&map), CU_INVALID_VALUE); // not on a tile
	map = region(array, 0, 0, 640, 128, first);
	CHECK_EQ(change(&map), CU_INVALID_VALUE); // beyond
	map = region(array, 0, 0, 512, 300, first);
	map.offset = 2 * MIB - 11 * TILE;
	CHECK_EQ(change(&map), CU_INVALID_VALUE); // twelve tiles
	map.offset = 100;
	CHECK_EQ(change(&map), CU_INVALID_VALUE);
	map = region(array, 0, 0, 128, 128, 12345);
	CHECK_EQ(change(&map), CU_INVALID_VALUE);
	map = region(array, 0, 0, 128, 128, first);
	map.device_mask = 2;
	CHECK_EQ(change(&map), CU_INVALID_VALUE);
	CHECK_OK(cuMemRelease(first));
	CHECK_OK(cuMemRelease(second));
	CHECK_EQ(used_now(), 4 * MIB); // under tiles
	map = region(array, 0, 0, 128, 128, 0);
	CHECK_OK(change(&map)); // no handle: unmaps
	CHECK_EQ(used_now(), 4 * MIB);
	map = region(array, 128, 0, 128, 128, 0);
	map.operation = CU_TILES_UNMAP;
	CHECK_EQ(cuMemMapArrayAsync_ptsz(&map, 1, NULL), 0);
	CHECK_EQ(used_now(), 2 * MIB); // the first handle has no tile left
	uint64_t third = memory(2 * MIB);
	map = region(array, 0, 256, 512, 44, third);
	CHECK_OK(change(&map)); // in the place of the second
	CHECK_EQ(used_now(), 2 * MIB);
	CHECK_OK(cuMemRelease(third));
	CHECK_OK(cuArrayDestroy(array)); // unmaps the rest
	CHECK_EQ(used_now(), 0);
	CHECK_OK(cuArray3DCreate_v2(&dense, &plain));
	CHECK_EQ(cuArrayGetSparseProperties(&properties, dense), CU_INVALID_VALUE);
	map = region(dense, 0, 0, 128, 128, 0);
	CHECK_EQ(change(&map), CU_INVALID_VALUE);
	CHECK_OK(cuArrayDestroy(dense));
	const cu_array3d_desc line = {512, 0, 0, 0x20, 1, CU_ARRAY_SPARSE}, both = {512, 300, 0, 0x20, 1, 0xc0};
	CHECK_EQ(cuArray3DCreate_v2(&array, &line), CU_INVALID_VALUE);
	CHECK_EQ(cuArray3DCreate_v2(&array, &both), CU_INVALID_VALUE);
}

// Levels of 512, 256 and 128 have tiles, 64 and 32 lie in the tail, once for each layer.
static void test_layered_mipmap(void)
{
	void *mipmap, *level;
	cu_sparse_properties properties;
	const cu_array3d_desc desc = {512, 512, 3, 0x20, 1, CU_ARRAY_SPARSE | CU_ARRAY_LAYERED};
	CHECK_OK(cuMipmappedArrayCreate(&mipmap, &desc, 5));
	CHECK_EQ(used_now(), 0);
	CHECK_OK(cuMipmappedArrayGetSparseProperties(&properties, mipmap));
	CHECK_EQ(properties.tail_first_level, 3);
	CHECK_EQ(properties.tail_bytes, TILE);
	uint64_t handle = memory(2 * MIB);
	CHECK_OK(cuMipmappedArrayGetLevel(&level, mipmap, 1));
	cu_array_map map = region(level, 0, 0, 128, 128, handle);
	CHECK_EQ(change(&map), CU_INVALID_VALUE); // a level is reached through the whole
	map.resource = mipmap, map.resource_type = CU_RESOURCE_MIPMAP;
	map.sparse_level.level = 1, map.sparse_level.layer = 2;
	CHECK_OK(change(&map));
	map.sparse_level.layer = 3;
	CHECK_EQ(change(&map), CU_INVALID_VALUE);
	map.sparse_level.layer = 0, map.sparse_level.level = 3;
	CHECK_EQ(change(&map), CU_INVALID_VALUE); // in the tail
	cu_array_map tail = {.resource_type = CU_RESOURCE_MIPMAP,
		.resource = mipmap,
		.subresource_type = CU_SUBRESOURCE_TAIL,
		.tail = {.layer = 2, .size = TILE},
		.operation = CU_TILES_MAP, .handle = handle, .offset = TILE, .device_mask = 1};
	CHECK_OK(change(&tail));
	tail.tail.offset = TILE;
	CHECK_EQ(change(&tail), CU_INVALID_VALUE);
	CHECK_OK(cuMemRelease(handle));
	map.sparse_level.level = 1, map.sparse_level.layer = 2, map.operation = CU_TILES_UNMAP;
	CHECK_OK(change(&map));
	CHECK_EQ(used_now(), 2 * MIB); // the tail lies on it still
	tail.tail.offset = 0, tail.operation = CU_TILES_UNMAP;
	CHECK_OK(change(&tail));
	CHECK_EQ(used_now(), 0);
	CHECK_OK(cuMipmappedArrayDestroy(mipmap));
}

static void test_solid_and_deferred(void)
{
	void *array, *context;
	cu_sparse_properties properties;
	const cu_array3d_desc solid = {64, 64, 40, 0x20, 4, CU_ARRAY_SPARSE},
						  deferred = {512, 512, 0, 0x20, 1, CU_ARRAY_DEFERRED_MAPPING};
	CHECK_OK(cuArray3DCreate_v2(&array, &solid)); // 16 bytes an element: 16 by 16 by 16
	CHECK_OK(cuArrayGetSparseProperties(&properties, array));
	CHECK_EQ(properties.tile_depth, 16);
	uint64_t handle = memory(2 * MIB);
	cu_array_map map = region(array, 16, 16, 32, 32, handle);
	map.sparse_level.z = 32, map.sparse_level.depth = 8; // the cut end
	CHECK_OK(change(&map));
	map.sparse_level.z = 8;
	CHECK_EQ(change(&map), CU_INVALID_VALUE);
	CHECK_OK(cuArrayDestroy(array));
	// Mapped as a whole, whatever region is named; and unmapped by its context's end.
	CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
	CHECK_OK(cuArray3DCreate_v2(&array, &deferred)); // 1 MiB
	CHECK_EQ(cuArrayGetSparseProperties(&properties, array), CU_INVALID_VALUE);
	map = region(array, 7, 7, 7, 7, handle);
	CHECK_OK(change(&map));
	map.offset = 2 * MIB - TILE;
	CHECK_EQ(change(&map), CU_INVALID_VALUE);
	CHECK_OK(cuMemRelease(handle));
	CHECK_EQ(used_now(), 2 * MIB);
	CHECK_OK(cuCtxDestroy_v2(context));
	CHECK_EQ(used_now(), 0);
}

// The log tells the extent of arrays that take nothing, as nothing else does.
static void check_extents(void)
{
	struct log_line line;
	ull bytes = 0;
	FILE *log = fopen(test_log_path, "r");
	CHECK(log != NULL);
	while (log && read_log(log, &line))
		bytes += !strcmp(line.kind, "sparse") && !strcmp(line.op, "alloc") ? line.requested : 0;
	CHECK_EQ(bytes,
		512 * 300 * 4 + 3 * 4 * (512 * 512 + 256 * 256 + 128 * 128 + 64 * 64 + 32 * 32) + 64 * 64 * 40 * 16 + MIB);
	if (log)
		fclose(log);
}

int main(void)
{
	log_to_file();
	start();
	test_flat();
	test_layered_mipmap();
	test_solid_and_deferred();
	check_extents();
	return check_done("driver_sparse");
}
