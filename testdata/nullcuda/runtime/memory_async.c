// Stream-ordered allocation.
#include "runtime.h"

static int alloc(cu_ptr *address, size_t bytes, void *pool, bool from_pool, void *stream)
{
	RT_TRY(rt_enter());
	if (!address)
		return RT_INVALID_VALUE;
	if (!bytes) {
		*address = 0;
		return RT_OK;
	}
	if (from_pool)
		return rt_calls->cuMemAllocFromPoolAsync(address, bytes, pool, stream);
	return rt_calls->cuMemAllocAsync(address, bytes, stream);
}

static int release(cu_ptr address, void *stream)
{
	RT_TRY(rt_enter());
	return address ? rt_calls->cuMemFreeAsync(address, stream) : RT_OK;
}

RT_API RT_PTSZ(cudaMallocAsync)(cu_ptr *address, size_t bytes, void *stream)
{
	return rt_done(alloc(address, bytes, NULL, false, stream));
}

RT_API RT_PTSZ(cudaMallocFromPoolAsync)(cu_ptr *address, size_t bytes, void *pool, void *stream)
{
	return rt_done(alloc(address, bytes, pool, true, stream));
}

RT_API RT_PTSZ(cudaFreeAsync)(cu_ptr address, void *stream) { return rt_done(release(address, stream)); }
