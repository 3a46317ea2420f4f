// Descriptions of copies that take an array, a pitch or three dimensions.
#include "copy.h"
#include "runtime.h"

#include <string.h>

int rt_copy_ends(int kind, int *source, int *destination)
{
	static const int ends[][2] = {
		[RT_HOST_TO_HOST] = {CU_MEMORY_HOST, CU_MEMORY_HOST},
		[RT_HOST_TO_DEVICE] = {CU_MEMORY_HOST, CU_MEMORY_DEVICE},
		[RT_DEVICE_TO_HOST] = {CU_MEMORY_DEVICE, CU_MEMORY_HOST},
		[RT_DEVICE_TO_DEVICE] = {CU_MEMORY_DEVICE, CU_MEMORY_DEVICE},
		[RT_COPY_DEFAULT] = {CU_MEMORY_UNIFIED, CU_MEMORY_UNIFIED},
	};
	if (kind < RT_HOST_TO_HOST || kind > RT_COPY_DEFAULT)
		return RT_INVALID_MEMCPY_DIRECTION;
	*source = ends[kind][0];
	*destination = ends[kind][1];
	return RT_OK;
}

int rt_array_element(void *array, size_t *bytes)
{
	cu_array3d_desc desc;
	RT_TRY(rt_calls->cuArray3DGetDescriptor(&desc, array));
	switch (desc.format) {
	case 0x01: case 0x08: // 8 bits
		*bytes = desc.channels;
		return RT_OK;
	case 0x02: case 0x09: case 0x10: // 16 bits
		*bytes = 2 * desc.channels;
		return RT_OK;
	case 0x03: case 0x0a: case 0x20: // 32 bits
		*bytes = 4 * desc.channels;
		return RT_OK;
	}
	return RT_INVALID_CHANNEL_DESCRIPTOR;
}

// Extents and positions count elements of the array where one takes part, bytes
// otherwise; the driver counts bytes always.
int rt_copy3d_to_driver(const rt_copy3d *in, cu_copy3d *out)
{
	size_t element = 1, width;
	bool both = (!in->src_array && !in->src_ptr.ptr) || (!in->dst_array && !in->dst_ptr.ptr) ||
	            (in->src_array && in->src_ptr.ptr) || (in->dst_array && in->dst_ptr.ptr);
	if (both)
		return RT_INVALID_VALUE;
	if (in->src_array || in->dst_array)
		RT_TRY(rt_array_element(in->src_array ? in->src_array : in->dst_array, &element));
	if (__builtin_mul_overflow(in->extent.width, element, &width))
		return RT_INVALID_VALUE;
	memset(out, 0, sizeof *out);
	RT_TRY(rt_copy_ends(in->kind, &out->src_type, &out->dst_type));
	if (in->src_array)
		out->src_type = CU_MEMORY_ARRAY;
	if (in->dst_array)
		out->dst_type = CU_MEMORY_ARRAY;
	out->src_x = in->src_pos.x * (in->src_array ? element : 1);
	out->src_y = in->src_pos.y;
	out->src_z = in->src_pos.z;
	out->src_host = in->src_ptr.ptr;
	out->src_device = (cu_ptr)in->src_ptr.ptr;
	out->src_array = in->src_array;
	out->src_pitch = in->src_ptr.pitch;
	out->src_height = in->src_ptr.ysize;
	out->dst_x = in->dst_pos.x * (in->dst_array ? element : 1);
	out->dst_y = in->dst_pos.y;
	out->dst_z = in->dst_pos.z;
	out->dst_host = in->dst_ptr.ptr;
	out->dst_device = (cu_ptr)in->dst_ptr.ptr;
	out->dst_array = in->dst_array;
	out->dst_pitch = in->dst_ptr.pitch;
	out->dst_height = in->dst_ptr.ysize;
	out->width = width;
	out->height = in->extent.height;
	out->depth = in->extent.depth;
	return RT_OK;
}

static int kind_of(int source, int destination)
{
	if (source == CU_MEMORY_UNIFIED || destination == CU_MEMORY_UNIFIED)
		return RT_COPY_DEFAULT;
	if (source == CU_MEMORY_HOST)
		return destination == CU_MEMORY_HOST ? RT_HOST_TO_HOST : RT_HOST_TO_DEVICE;
	return destination == CU_MEMORY_HOST ? RT_DEVICE_TO_HOST : RT_DEVICE_TO_DEVICE;
}

int rt_copy3d_from_driver(const cu_copy3d *in, rt_copy3d *out)
{
	size_t element = 1;
	bool from_array = in->src_type == CU_MEMORY_ARRAY, to_array = in->dst_type == CU_MEMORY_ARRAY;
	if (from_array || to_array)
		RT_TRY(rt_array_element(from_array ? in->src_array : in->dst_array, &element));
	memset(out, 0, sizeof *out);
	out->kind = kind_of(in->src_type, in->dst_type);
	out->extent = (rt_extent){in->width / element, in->height, in->depth};
	out->src_pos = (rt_pos){in->src_x / (from_array ? element : 1), in->src_y, in->src_z};
	out->dst_pos = (rt_pos){in->dst_x / (to_array ? element : 1), in->dst_y, in->dst_z};
	if (from_array)
		out->src_array = in->src_array;
	else
		out->src_ptr = (rt_pitched){in->src_type == CU_MEMORY_HOST ? (void *)in->src_host : (void *)in->src_device,
		                            in->src_pitch, in->width, in->src_height};
	if (to_array)
		out->dst_array = in->dst_array;
	else
		out->dst_ptr = (rt_pitched){in->dst_type == CU_MEMORY_HOST ? in->dst_host : (void *)in->dst_device,
		                            in->dst_pitch, in->width, in->dst_height};
	return RT_OK;
}
