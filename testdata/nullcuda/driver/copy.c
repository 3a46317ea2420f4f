#include "copy.h"
#include "array.h"
#include "range.h"

#include <string.h>

// One side of a copy, resolved to memory of this process.
struct side {
	char *start;          // of the first row
	size_t pitch, slice;  // bytes between rows and between planes
};

// The rectangle that a copy moves.
struct extent {
	size_t width, height, depth;
};

// Whether [address, address + bytes) may be touched. Device memory must be live;
// a unified address that no call handed out is the program's own host memory.
static bool is_usable(cu_ptr address, size_t bytes, int type)
{
	if (bytes > NC_SIZE_MAX || address > UINT64_MAX - bytes)
		return false;
	if (type == CU_MEMORY_HOST)
		return address != 0;
	if (type == CU_MEMORY_DEVICE)
		return nc_range_covers(address, bytes);
	return address && (!nc_range_at(address) || nc_range_covers(address, bytes));
}

static cu_result resolve_linear(cu_ptr base, int type, size_t x, size_t y, size_t z, size_t pitch, size_t rows,
                                const struct extent *extent, struct side *side)
{
	if (!pitch)
		pitch = extent->width + x;
	if (!rows)
		rows = extent->height + y;
	if (pitch > NC_SIZE_MAX || rows > NC_SIZE_MAX || (extent->height > 1 && pitch < extent->width))
		return CU_INVALID_VALUE;
	__uint128_t start = (__uint128_t)z * rows * pitch + (__uint128_t)y * pitch + x;
	__uint128_t span = (__uint128_t)(extent->depth - 1) * rows * pitch + (__uint128_t)(extent->height - 1) * pitch +
	                   extent->width;
	if (start > NC_SIZE_MAX || span > NC_SIZE_MAX || !is_usable(base + (size_t)start, (size_t)span, type))
		return CU_INVALID_VALUE;
	*side = (struct side){(char *)(base + (size_t)start), pitch, rows * pitch};
	return CU_OK;
}

static cu_result resolve_array(
	void *handle, size_t x, size_t y, size_t z, const struct extent *extent, struct side *side)
{
	struct nc_array *array = nc_object_find(handle, NC_ARRAY_OBJECT);
	if (!array)
		return CU_INVALID_HANDLE;
	size_t pitch = array->desc.width * array->element;
	size_t rows = array->desc.height ? array->desc.height : 1, planes = array->desc.depth ? array->desc.depth : 1;
	if (x > pitch || extent->width > pitch - x || y > rows || extent->height > rows - y || z > planes ||
	    extent->depth > planes - z)
		return CU_INVALID_VALUE;
	*side = (struct side){array->data + (z * rows + y) * pitch + x, pitch, rows * pitch};
	return CU_OK;
}

static cu_result resolve(const cu_copy3d *c, const struct extent *extent, struct side *from, struct side *to)
{
	NC_LOCKED();
	if (c->src_type == CU_MEMORY_ARRAY) {
		NC_TRY(resolve_array(c->src_array, c->src_x, c->src_y, c->src_z, extent, from));
	} else {
		cu_ptr base = c->src_type == CU_MEMORY_HOST ? (uintptr_t)c->src_host : c->src_device;
		NC_TRY(
			resolve_linear(base, c->src_type, c->src_x, c->src_y, c->src_z, c->src_pitch, c->src_height, extent, from));
	}
	if (c->dst_type == CU_MEMORY_ARRAY)
		return resolve_array(c->dst_array, c->dst_x, c->dst_y, c->dst_z, extent, to);
	cu_ptr base = c->dst_type == CU_MEMORY_HOST ? (uintptr_t)c->dst_host : c->dst_device;
	return resolve_linear(base, c->dst_type, c->dst_x, c->dst_y, c->dst_z, c->dst_pitch, c->dst_height, extent, to);
}

static bool type_is_known(int type) { return type >= CU_MEMORY_HOST && type <= CU_MEMORY_UNIFIED; }

cu_result nc_copy_run(const cu_copy3d *copy)
{
	const struct extent extent = {copy->width, copy->height, copy->depth};
	struct side from, to;
	if (!type_is_known(copy->src_type) || !type_is_known(copy->dst_type))
		return CU_INVALID_VALUE;
	if (!extent.width || !extent.height || !extent.depth)
		return CU_OK;
	if (extent.width > NC_SIZE_MAX || extent.height > NC_SIZE_MAX || extent.depth > NC_SIZE_MAX)
		return CU_INVALID_VALUE;
	NC_TRY(resolve(copy, &extent, &from, &to));
	for (size_t z = 0; z < extent.depth; z++)
		for (size_t y = 0; y < extent.height; y++)
			memmove(to.start + z * to.slice + y * to.pitch, from.start + z * from.slice + y * from.pitch, extent.width);
	return CU_OK;
}

cu_copy3d nc_copy_linear(cu_ptr destination, cu_ptr source, size_t bytes)
{
	return (cu_copy3d){
		.src_type = CU_MEMORY_UNIFIED, .src_device = source, .dst_type = CU_MEMORY_UNIFIED, .dst_device = destination,
		.width = bytes, .height = 1, .depth = 1,
	};
}
