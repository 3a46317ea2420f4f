// The public fills.
#include "capture.h"
#include "context.h"
#include "copy.h"

static cu_result run_now(cu_ptr dst, size_t pitch, unsigned value, unsigned element, size_t width, size_t height)
{
	NC_CURRENT(context);
	const cu_memset_node fill = {dst, pitch, value, element, width, height, NULL};
	return nc_fill_run(&fill);
}

static cu_result submit(
	cu_ptr dst, size_t pitch, unsigned value, unsigned element, size_t width, size_t height, void *stream)
{
	bool captured;
	const struct nc_work work = {.type = NC_NODE_FILL, .fill = {dst, pitch, value, element, width, height, NULL}};
	NC_TRY(nc_capture_submit(stream, &work, &captured));
	return captured ? CU_OK : nc_fill_run(&work.fill);
}

CU_API cuMemsetD8_v2(cu_ptr dst, unsigned char value, size_t n) { return run_now(dst, 0, value, 1, n, 1); }
CU_API cuMemsetD16_v2(cu_ptr dst, unsigned short value, size_t n) { return run_now(dst, 0, value, 2, n, 1); }
CU_API cuMemsetD32_v2(cu_ptr dst, unsigned value, size_t n) { return run_now(dst, 0, value, 4, n, 1); }

CU_API cuMemsetD2D8_v2(cu_ptr dst, size_t pitch, unsigned char value, size_t width, size_t height)
{
	return run_now(dst, pitch, value, 1, width, height);
}

CU_API cuMemsetD2D16_v2(cu_ptr dst, size_t pitch, unsigned short value, size_t width, size_t height)
{
	return run_now(dst, pitch, value, 2, width, height);
}

CU_API cuMemsetD2D32_v2(cu_ptr dst, size_t pitch, unsigned value, size_t width, size_t height)
{
	return run_now(dst, pitch, value, 4, width, height);
}

CU_API cuMemsetD8Async(cu_ptr dst, unsigned char value, size_t n, void *stream)
{
	return submit(dst, 0, value, 1, n, 1, stream);
}

CU_API cuMemsetD16Async(cu_ptr dst, unsigned short value, size_t n, void *stream)
{
	return submit(dst, 0, value, 2, n, 1, stream);
}

CU_API cuMemsetD32Async(cu_ptr dst, unsigned value, size_t n, void *stream)
{
	return submit(dst, 0, value, 4, n, 1, stream);
}

CU_API cuMemsetD2D8Async(cu_ptr dst, size_t pitch, unsigned char value, size_t width, size_t height, void *stream)
{
	return submit(dst, pitch, value, 1, width, height, stream);
}

CU_API cuMemsetD2D16Async(cu_ptr dst, size_t pitch, unsigned short value, size_t width, size_t height, void *stream)
{
	return submit(dst, pitch, value, 2, width, height, stream);
}

CU_API cuMemsetD2D32Async(cu_ptr dst, size_t pitch, unsigned value, size_t width, size_t height, void *stream)
{
	return submit(dst, pitch, value, 4, width, height, stream);
}
