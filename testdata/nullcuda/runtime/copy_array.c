// Copies into, out of and between arrays. Offsets and widths are bytes here.
#include "copy.h"
#include "runtime.h"

// One end of such a copy: an array with an offset, or a pointer with a pitch.
struct end {
	void *array;
	size_t x, y; // bytes, rows
	void *pointer;
	size_t pitch;
};

static int rows(cu_copy2d *copy, struct end to, struct end from, size_t width, size_t height, int kind)
{
	RT_TRY(rt_enter());
	*copy = (cu_copy2d){
		.src_x = from.x, .src_y = from.y, .src_array = from.array,
		.src_host = from.pointer, .src_device = (cu_ptr)from.pointer, .src_pitch = from.pitch,
		.dst_x = to.x, .dst_y = to.y, .dst_array = to.array,
		.dst_host = to.pointer, .dst_device = (cu_ptr)to.pointer, .dst_pitch = to.pitch,
		.width = width, .height = height,
	};
	RT_TRY(rt_copy_ends(kind, &copy->src_type, &copy->dst_type));
	if (from.array)
		copy->src_type = CU_MEMORY_ARRAY;
	if (to.array)
		copy->dst_type = CU_MEMORY_ARRAY;
	return RT_OK;
}

static int copy_rows(struct end to, struct end from, size_t width, size_t height, int kind, bool async, void *stream)
{
	cu_copy2d copy;
	RT_TRY(rows(&copy, to, from, width, height, kind));
	if (!width || !height)
		return RT_OK;
	return async ? rt_calls->cuMemcpy2DAsync(&copy, stream) : rt_calls->cuMemcpy2DUnaligned(&copy);
}

// The old calls copy a run of bytes that may begin and end inside a row.
static int copy_run(struct end to, struct end from, size_t count, int kind, bool async, void *stream)
{
	void *array = to.array ? to.array : from.array;
	size_t x = to.array ? to.x : from.x, element;
	cu_array3d_desc desc;
	RT_TRY(rt_enter());
	RT_TRY(rt_array_element(array, &element));
	RT_TRY(rt_calls->cuArray3DGetDescriptor(&desc, array));
	size_t row = desc.width * element;
	if (x >= row || (to.array && from.array && (to.x || from.x) && count > row - x))
		return RT_INVALID_VALUE;
	while (count) {
		size_t part = count < row - x ? count : row - x;
		size_t height = x || part < row ? 1 : count / row;
		to.pitch = from.pitch = row;
		RT_TRY(copy_rows(to, from, part, height, kind, async, stream));
		to.pointer = to.pointer ? (char *)to.pointer + part * height : NULL;
		from.pointer = from.pointer ? (char *)from.pointer + part * height : NULL;
		count -= part * height;
		to.y += to.array ? height : 0;
		from.y += from.array ? height : 0;
		to.x = from.x = x = 0;
	}
	return RT_OK;
}

#define ARRAY(array, x, y) (struct end){(void *)(array), x, y, NULL, 0}
#define POINTER(pointer, pitch) (struct end){NULL, 0, 0, (void *)(pointer), pitch}

RT_API RT_PTDS(cudaMemcpy2DToArray)(
	void *array, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height, int kind)
{
	return rt_done(copy_rows(ARRAY(array, x, y), POINTER(from, pitch), width, height, kind, false, NULL));
}

RT_API RT_PTSZ(cudaMemcpy2DToArrayAsync)(void *array, size_t x, size_t y, const void *from, size_t pitch, size_t width,
	size_t height, int kind, void *stream)
{
	return rt_done(copy_rows(ARRAY(array, x, y), POINTER(from, pitch), width, height, kind, true, stream));
}

RT_API RT_PTDS(cudaMemcpy2DFromArray)(
	void *to, size_t pitch, const void *array, size_t x, size_t y, size_t width, size_t height, int kind)
{
	return rt_done(copy_rows(POINTER(to, pitch), ARRAY(array, x, y), width, height, kind, false, NULL));
}

RT_API RT_PTSZ(cudaMemcpy2DFromArrayAsync)(
	void *to, size_t pitch, const void *array, size_t x, size_t y, size_t width, size_t height, int kind, void *stream)
{
	return rt_done(copy_rows(POINTER(to, pitch), ARRAY(array, x, y), width, height, kind, true, stream));
}

RT_API RT_PTDS(cudaMemcpy2DArrayToArray)(void *to, size_t to_x, size_t to_y, const void *from, size_t from_x,
	size_t from_y, size_t width, size_t height, int kind)
{
	return rt_done(copy_rows(ARRAY(to, to_x, to_y), ARRAY(from, from_x, from_y), width, height, kind, false, NULL));
}

RT_API RT_PTDS(cudaMemcpyToArray)(void *array, size_t x, size_t y, const void *from, size_t count, int kind)
{
	return rt_done(copy_run(ARRAY(array, x, y), POINTER(from, 0), count, kind, false, NULL));
}

RT_API RT_PTSZ(cudaMemcpyToArrayAsync)(
	void *array, size_t x, size_t y, const void *from, size_t count, int kind, void *stream)
{
	return rt_done(copy_run(ARRAY(array, x, y), POINTER(from, 0), count, kind, true, stream));
}

RT_API RT_PTDS(cudaMemcpyFromArray)(void *to, const void *array, size_t x, size_t y, size_t count, int kind)
{
	return rt_done(copy_run(POINTER(to, 0), ARRAY(array, x, y), count, kind, false, NULL));
}

RT_API RT_PTSZ(cudaMemcpyFromArrayAsync)(
	void *to, const void *array, size_t x, size_t y, size_t count, int kind, void *stream)
{
	return rt_done(copy_run(POINTER(to, 0), ARRAY(array, x, y), count, kind, true, stream));
}

RT_API RT_PTDS(cudaMemcpyArrayToArray)(
	void *to, size_t to_x, size_t to_y, const void *from, size_t from_x, size_t from_y, size_t count, int kind)
{
	return rt_done(copy_run(ARRAY(to, to_x, to_y), ARRAY(from, from_x, from_y), count, kind, false, NULL));
}
