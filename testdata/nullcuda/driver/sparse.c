// Only which handle lies under which tile is kept here. The data of the array stays in
// pages of its own whatever is mapped, so what is read from an unmapped tile is what
// was last written there, zeros at first; a real device promises nothing.
#include "sparse.h"
#include "array.h"
#include "stream.h"
#include "vmm.h"

#include <stdlib.h>

#define TILE_BYTES ((size_t)64 << 10)

// The tiles of one level in x, y and z (or layers), the first of which is tiles[first].
struct grid {
	size_t first;
	unsigned x, y, z;
};

struct nc_sparse {
	unsigned tile[3]; // extent in elements
	bool deferred;    // mapped as a whole
	bool layered;
	unsigned levels, tail_first; // levels from tail_first on lie in the tail
	unsigned layers;             // 1 unless layered
	size_t tail_start, tail_tiles; // of each layer
	struct grid grid[NC_MIP_LEVELS_MAX];
	size_t tile_count;
	struct nc_vmm_handle *tiles[]; // NULL: nothing mapped
};

// 64 KiB of elements in the shape that hardware gives them. False for sizes that no
// format has.
static bool tile_extent(size_t element, bool solid, unsigned tile[3])
{
	static const unsigned flat[][3] = {{256, 256, 1}, {256, 128, 1}, {128, 128, 1}, {128, 64, 1}, {64, 64, 1}};
	static const unsigned deep[][3] = {{64, 32, 32}, {32, 32, 32}, {32, 32, 16}, {32, 16, 16}, {16, 16, 16}};
	if (!element || element > 16 || element & (element - 1))
		return false;
	const unsigned *found = (solid ? deep : flat)[__builtin_ctzl(element)];
	for (int i = 0; i < 3; i++)
		tile[i] = found[i];
	return true;
}

static unsigned tiles_along(size_t extent, unsigned tile) { return (unsigned)((extent + tile - 1) / tile); }

static size_t planes(size_t n) { return n ? n : 1; }

// Fills in the grids of the levels that have whole tiles and returns the bytes that one
// layer of the others has.
static size_t lay_out(struct nc_sparse *sparse, const cu_array3d_desc *desc, size_t element)
{
	size_t tail = 0;
	sparse->tail_first = sparse->levels;
	for (unsigned i = 0; i < sparse->levels; i++) {
		const cu_array3d_desc level = nc_array_level(desc, i);
		size_t depth = sparse->layered ? 1 : planes(level.depth);
		bool small = level.width < sparse->tile[0] || level.height < sparse->tile[1] || depth < sparse->tile[2];
		if (sparse->levels > 1 && small && sparse->tail_first == sparse->levels)
			sparse->tail_first = i;
		if (i >= sparse->tail_first) {
			tail += level.width * level.height * depth * element;
			continue;
		}
		struct grid grid = {sparse->tile_count, tiles_along(level.width, sparse->tile[0]),
			tiles_along(level.height, sparse->tile[1]),
			sparse->layered ? sparse->layers : tiles_along(depth, sparse->tile[2])};
		sparse->grid[i] = grid;
		sparse->tile_count += (size_t)grid.x * grid.y * grid.z;
	}
	return tail;
}

cu_result nc_sparse_new(
	const cu_array3d_desc *desc, unsigned levels, size_t element, size_t bytes, struct nc_sparse **out)
{
	struct nc_sparse plan = {.levels = levels, .layered = desc->flags & CU_ARRAY_LAYERED, .layers = 1};
	if (!desc->height || (desc->flags & CU_ARRAY_SPARSE && desc->flags & CU_ARRAY_DEFERRED_MAPPING))
		return CU_INVALID_VALUE;
	if (!tile_extent(element, desc->depth && !plan.layered, plan.tile))
		return CU_INVALID_VALUE;
	plan.deferred = desc->flags & CU_ARRAY_DEFERRED_MAPPING;
	if (plan.layered)
		plan.layers = (unsigned)planes(desc->depth);
	if (plan.deferred) {
		plan.tile_count = (bytes + TILE_BYTES - 1) / TILE_BYTES;
	} else {
		plan.tail_tiles = (lay_out(&plan, desc, element) + TILE_BYTES - 1) / TILE_BYTES;
		plan.tail_start = plan.tile_count;
		plan.tile_count += plan.tail_tiles * plan.layers;
	}
	struct nc_sparse *sparse = calloc(1, sizeof *sparse + plan.tile_count * sizeof *sparse->tiles);
	if (!sparse)
		return CU_OUT_OF_MEMORY;
	*sparse = plan;
	*out = sparse;
	return CU_OK;
}

// Replaces what lies under a tile. The old handle's memory may go with that.
static void set_tile(struct nc_sparse *sparse, size_t index, struct nc_vmm_handle *handle)
{
	struct nc_vmm_handle *old = sparse->tiles[index];
	if (handle)
		nc_vmm_mapped(handle);
	sparse->tiles[index] = handle;
	if (old)
		nc_vmm_unmapped(old);
}

void nc_sparse_free(struct nc_sparse *sparse)
{
	for (size_t i = 0; i < sparse->tile_count; i++)
		set_tile(sparse, i, NULL);
	free(sparse);
}

// A box of tiles of one grid, or a run of them when x is the only extent.
struct box {
	size_t first;
	size_t from_x, from_y, from_z, x, y, z;
	size_t row, plane; // tiles to the next y and z
};

// One dimension of a region in elements as tiles: it starts on a tile and ends on one,
// or at the edge.
static bool span(
	unsigned offset, unsigned extent, unsigned tile, unsigned tiles, size_t edge, size_t *from, size_t *count)
{
	uint64_t end = (uint64_t)offset + extent;
	if (!extent || offset % tile || end > (uint64_t)tiles * tile || (end % tile && end != edge))
		return false;
	*from = offset / tile;
	*count = tiles_along(extent, tile);
	return true;
}

static bool level_box(
	const struct nc_sparse *sparse, const cu_array3d_desc *base, const cu_array_map *map, struct box *box)
{
	unsigned index = map->sparse_level.level;
	if (index >= sparse->tail_first || (!sparse->layered && map->sparse_level.layer) ||
		map->sparse_level.layer >= sparse->layers)
		return false;
	const cu_array3d_desc level = nc_array_level(base, index);
	const struct grid *grid = &sparse->grid[index];
	*box = (struct box){.first = grid->first, .row = grid->x, .plane = (size_t)grid->x * grid->y};
	if (!span(map->sparse_level.x, map->sparse_level.width, sparse->tile[0], grid->x, level.width, &box->from_x,
			&box->x) ||
		!span(map->sparse_level.y, map->sparse_level.height, sparse->tile[1], grid->y, level.height, &box->from_y,
			&box->y))
		return false;
	if (!sparse->layered)
		return span(map->sparse_level.z, map->sparse_level.depth, sparse->tile[2], grid->z, planes(level.depth),
			&box->from_z, &box->z);
	box->from_z = map->sparse_level.layer;
	box->z = 1;
	return !map->sparse_level.z && map->sparse_level.depth == 1;
}

static bool tail_box(const struct nc_sparse *sparse, const cu_array_map *map, struct box *box)
{
	uint64_t offset = map->tail.offset, size = map->tail.size;
	if (offset % TILE_BYTES || !size || size % TILE_BYTES || map->tail.layer >= sparse->layers)
		return false;
	uint64_t from = offset / TILE_BYTES, count = size / TILE_BYTES;
	if (from > sparse->tail_tiles || count > sparse->tail_tiles - from)
		return false;
	*box = (struct box){
		.first = sparse->tail_start + map->tail.layer * sparse->tail_tiles, .from_x = from, .x = count, .y = 1, .z = 1};
	return true;
}

// The sparse array of an entry, its descriptor and its device.
static cu_result find_resource(
	const cu_array_map *map, struct nc_sparse **sparse, const cu_array3d_desc **desc, int *device)
{
	if (map->resource_type == CU_RESOURCE_ARRAY) {
		struct nc_array *array = nc_object_find(map->resource, NC_ARRAY_OBJECT);
		if (!array || array->parent || !array->sparse)
			return CU_INVALID_VALUE;
		*sparse = array->sparse;
		*desc = &array->desc;
		*device = array->device;
		return CU_OK;
	}
	struct nc_mipmap *mipmap =
		map->resource_type == CU_RESOURCE_MIPMAP ? nc_object_find(map->resource, NC_MIPMAP) : NULL;
	if (!mipmap || !mipmap->sparse)
		return CU_INVALID_VALUE;
	*sparse = mipmap->sparse;
	*desc = &mipmap->level[0]->desc;
	*device = mipmap->device;
	return CU_OK;
}

static cu_result apply(const cu_array_map *map)
{
	struct nc_sparse *sparse;
	const cu_array3d_desc *desc;
	struct box box;
	int device;
	NC_TRY(find_resource(map, &sparse, &desc, &device));
	if ((map->operation != CU_TILES_MAP && map->operation != CU_TILES_UNMAP) || map->handle_type || map->flags ||
	    map->device_mask != 1u << device)
		return CU_INVALID_VALUE;
	if (sparse->deferred)
		box = (struct box){.x = sparse->tile_count, .y = 1, .z = 1};
	else if (!(map->subresource_type == CU_SUBRESOURCE_LEVEL ? level_box(sparse, desc, map, &box) :
	           map->subresource_type == CU_SUBRESOURCE_TAIL && tail_box(sparse, map, &box)))
		return CU_INVALID_VALUE;
	// Unmapping is asked for by the operation, or by mapping no handle.
	struct nc_vmm_handle *handle = NULL;
	if (map->operation == CU_TILES_MAP && map->handle) {
		handle = nc_object_find((void *)map->handle, NC_VMM_HANDLE);
		if (!handle || handle->multicast || handle->kind == NC_HOST || handle->device != device ||
			map->offset % TILE_BYTES || map->offset > handle->size ||
			box.x * box.y * box.z * TILE_BYTES > handle->size - map->offset)
			return CU_INVALID_VALUE;
	}
	for (size_t z = 0; z < box.z; z++)
		for (size_t y = 0; y < box.y; y++)
			for (size_t x = 0; x < box.x; x++)
				set_tile(sparse, box.first + (box.from_z + z) * box.plane + (box.from_y + y) * box.row + box.from_x + x,
					handle);
	return CU_OK;
}

CU_API cuMemMapArrayAsync(cu_array_map *list, unsigned count, void *stream_handle)
{
	struct nc_stream *stream;
	NC_TRY(nc_init_check());
	if (!list || !count)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	NC_TRY(nc_stream_from_handle(stream_handle, &stream));
	if (stream->capture)
		return CU_STREAM_CAPTURE_UNSUPPORTED;
	for (unsigned i = 0; i < count; i++)
		NC_TRY(apply(&list[i]));
	return CU_OK;
}

static cu_result properties(const struct nc_sparse *sparse, cu_sparse_properties *out)
{
	if (!out || !sparse || sparse->deferred)
		return CU_INVALID_VALUE;
	*out = (cu_sparse_properties){
		.tile_width = sparse->tile[0], .tile_height = sparse->tile[1], .tile_depth = sparse->tile[2],
		.tail_first_level = sparse->levels > 1 ? sparse->tail_first : 0, .tail_bytes = sparse->tail_tiles * TILE_BYTES,
	};
	return CU_OK;
}

CU_API cuArrayGetSparseProperties(cu_sparse_properties *out, void *handle)
{
	NC_ENTER();
	struct nc_array *array = nc_object_find(handle, NC_ARRAY_OBJECT);
	if (!array)
		return CU_INVALID_HANDLE;
	return properties(array->sparse, out);
}

CU_API cuMipmappedArrayGetSparseProperties(cu_sparse_properties *out, void *handle)
{
	NC_ENTER();
	struct nc_mipmap *mipmap = nc_object_find(handle, NC_MIPMAP);
	if (!mipmap)
		return CU_INVALID_HANDLE;
	return properties(mipmap->sparse, out);
}
