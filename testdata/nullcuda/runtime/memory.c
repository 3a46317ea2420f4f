// Allocation and release. Zero bytes is a success with a null address, here as
// in CUDA, although the driver refuses it.
#include "runtime.h"

static int device_alloc(cu_ptr *address, size_t bytes)
{
	RT_TRY(rt_enter());
	if (!address)
		return RT_INVALID_VALUE;
	if (!bytes) {
		*address = 0;
		return RT_OK;
	}
	return rt_calls->cuMemAlloc(address, bytes);
}

static int managed_alloc(cu_ptr *address, size_t bytes, unsigned flags)
{
	RT_TRY(rt_enter());
	if (!address || !bytes)
		return RT_INVALID_VALUE;
	return rt_calls->cuMemAllocManaged(address, bytes, flags);
}

static int host_alloc(void **address, size_t bytes, unsigned flags)
{
	RT_TRY(rt_enter());
	if (!address)
		return RT_INVALID_VALUE;
	if (!bytes) {
		*address = NULL;
		return RT_OK;
	}
	return rt_calls->cuMemHostAlloc(address, bytes, flags);
}

// The driver asks for the element size that rows must stay aligned to; the
// runtime asks for the widest one that the hardware loads at once.
static int pitched_alloc(cu_ptr *address, size_t *pitch, size_t width, size_t height)
{
	enum { ELEMENT_BYTES = 16 };
	RT_TRY(rt_enter());
	if (!address || !pitch)
		return RT_INVALID_VALUE;
	if (!width || !height) {
		*address = 0;
		*pitch = 0;
		return RT_OK;
	}
	return rt_calls->cuMemAllocPitch(address, pitch, width, height, ELEMENT_BYTES);
}

static int pitched_alloc_3d(rt_pitched *out, rt_extent extent)
{
	size_t rows, pitch;
	cu_ptr address;
	RT_TRY(rt_enter());
	if (!out)
		return RT_INVALID_VALUE;
	if (__builtin_mul_overflow(extent.height, extent.depth, &rows))
		return RT_OUT_OF_MEMORY;
	RT_TRY(pitched_alloc(&address, &pitch, extent.width, rows));
	*out = (rt_pitched){(void *)address, pitch, extent.width, extent.height};
	return RT_OK;
}

static int device_free(cu_ptr address)
{
	RT_TRY(rt_enter());
	return address ? rt_calls->cuMemFree(address) : RT_OK;
}

static int host_free(void *address)
{
	RT_TRY(rt_enter());
	return address ? rt_calls->cuMemFreeHost(address) : RT_OK;
}

static int ipc_open(cu_ptr *address, cu_ipc_handle handle, unsigned flags)
{
	RT_TRY(rt_enter());
	return rt_calls->cuIpcOpenMemHandle(address, handle, flags);
}

static int pool_export(void *handle, void *pool, int type, unsigned flags)
{
	RT_TRY(rt_driver());
	return rt_calls->cuMemPoolExportToShareableHandle(handle, pool, type, flags);
}

static int pool_import(void **pool, void *handle, int type, unsigned flags)
{
	RT_TRY(rt_driver());
	return rt_calls->cuMemPoolImportFromShareableHandle(pool, handle, type, flags);
}

RT_API cudaMalloc(cu_ptr *address, size_t bytes) { return rt_done(device_alloc(address, bytes)); }
RT_API cudaFree(cu_ptr address) { return rt_done(device_free(address)); }
RT_API cudaHostAlloc(void **address, size_t bytes, unsigned flags)
{
	return rt_done(host_alloc(address, bytes, flags));
}
RT_API cudaMallocHost(void **address, size_t bytes) { return rt_done(host_alloc(address, bytes, 0)); }
RT_API cudaFreeHost(void *address) { return rt_done(host_free(address)); }
RT_API cudaMalloc3D(rt_pitched *out, rt_extent extent) { return rt_done(pitched_alloc_3d(out, extent)); }

RT_API cudaMallocManaged(cu_ptr *address, size_t bytes, unsigned flags)
{
	return rt_done(managed_alloc(address, bytes, flags));
}

RT_API cudaMallocPitch(cu_ptr *address, size_t *pitch, size_t width, size_t height)
{
	return rt_done(pitched_alloc(address, pitch, width, height));
}

RT_API cudaIpcOpenMemHandle(cu_ptr *address, cu_ipc_handle handle, unsigned flags)
{
	return rt_done(ipc_open(address, handle, flags));
}

RT_API cudaMemPoolExportToShareableHandle(void *handle, void *pool, int type, unsigned flags)
{
	return rt_done(pool_export(handle, pool, type, flags));
}

RT_API cudaMemPoolImportFromShareableHandle(void **pool, void *handle, int type, unsigned flags)
{
	return rt_done(pool_import(pool, handle, type, flags));
}
