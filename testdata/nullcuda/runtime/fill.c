// cudaMemset in one, two and three dimensions.
#include "runtime.h"

static int fill_solid(rt_pitched area, int value, rt_extent extent, void *stream, bool async)
{
	size_t rows, slice;
	RT_TRY(rt_enter());
	if (!extent.width || !extent.height || !extent.depth)
		return RT_OK;
	if (__builtin_mul_overflow(area.pitch, area.ysize, &slice) ||
		__builtin_mul_overflow(extent.height, extent.depth, &rows))
		return RT_INVALID_VALUE;
	// Slices that follow each other without a gap are one area.
	bool dense = area.ysize == extent.height;
	for (size_t z = 0; z < (dense ? 1 : extent.depth); z++) {
		cu_ptr start = (cu_ptr)area.ptr + z * slice;
		size_t height = dense ? rows : extent.height;
		RT_TRY(async
				   ? rt_calls->cuMemsetD2D8Async(start, area.pitch, (unsigned char)value, extent.width, height, stream)
				   : rt_calls->cuMemsetD2D8(start, area.pitch, (unsigned char)value, extent.width, height));
	}
	return RT_OK;
}

RT_API RT_PTDS(cudaMemset)(cu_ptr address, int value, size_t count)
{
	int error = rt_enter();
	if (error == RT_OK && count)
		error = rt_calls->cuMemsetD8(address, (unsigned char)value, count);
	return rt_done(error);
}

RT_API RT_PTSZ(cudaMemsetAsync)(cu_ptr address, int value, size_t count, void *stream)
{
	int error = rt_enter();
	if (error == RT_OK && count)
		error = rt_calls->cuMemsetD8Async(address, (unsigned char)value, count, stream);
	return rt_done(error);
}

RT_API RT_PTDS(cudaMemset2D)(cu_ptr address, size_t pitch, int value, size_t width, size_t height)
{
	int error = rt_enter();
	if (error == RT_OK && width && height)
		error = rt_calls->cuMemsetD2D8(address, pitch, (unsigned char)value, width, height);
	return rt_done(error);
}

RT_API RT_PTSZ(cudaMemset2DAsync)(cu_ptr address, size_t pitch, int value, size_t width, size_t height, void *stream)
{
	int error = rt_enter();
	if (error == RT_OK && width && height)
		error = rt_calls->cuMemsetD2D8Async(address, pitch, (unsigned char)value, width, height, stream);
	return rt_done(error);
}

RT_API RT_PTDS(cudaMemset3D)(rt_pitched area, int value, rt_extent extent)
{
	return rt_done(fill_solid(area, value, extent, NULL, false));
}

RT_API RT_PTSZ(cudaMemset3DAsync)(rt_pitched area, int value, rt_extent extent, void *stream)
{
	return rt_done(fill_solid(area, value, extent, stream, true));
}
