// The public copies and fills. Each turns its arguments into a copy or a fill
// and either runs it or, in a capturing stream, records it.
#include "capture.h"
#include "context.h"
#include "copy.h"

static cu_result run_now(const cu_copy3d *copy)
{
	NC_CURRENT(context);
	return nc_copy_run(copy);
}

static cu_result submit(const cu_copy3d *copy, void *stream)
{
	bool captured;
	const struct nc_work work = {.type = NC_NODE_COPY, .copy = *copy};
	NC_TRY(nc_capture_submit(stream, &work, &captured));
	return captured ? CU_OK : nc_copy_run(copy);
}

static cu_copy3d linear(int dst_type, cu_ptr dst, int src_type, cu_ptr src, size_t bytes)
{
	cu_copy3d copy = nc_copy_linear(dst, src, bytes);
	copy.dst_type = dst_type;
	copy.src_type = src_type;
	copy.dst_host = (void *)dst;
	copy.src_host = (void *)src;
	return copy;
}

static cu_copy3d unified(cu_ptr dst, cu_ptr src, size_t bytes)
{
	return linear(CU_MEMORY_UNIFIED, dst, CU_MEMORY_UNIFIED, src, bytes);
}

static cu_copy3d host_to_device(cu_ptr dst, const void *src, size_t bytes)
{
	return linear(CU_MEMORY_DEVICE, dst, CU_MEMORY_HOST, (uintptr_t)src, bytes);
}

static cu_copy3d device_to_host(void *dst, cu_ptr src, size_t bytes)
{
	return linear(CU_MEMORY_HOST, (uintptr_t)dst, CU_MEMORY_DEVICE, src, bytes);
}

static cu_copy3d device_to_device(cu_ptr dst, cu_ptr src, size_t bytes)
{
	return linear(CU_MEMORY_DEVICE, dst, CU_MEMORY_DEVICE, src, bytes);
}

CU_API cuMemcpy(cu_ptr dst, cu_ptr src, size_t bytes)
{
	cu_copy3d copy = unified(dst, src, bytes);
	return run_now(&copy);
}

CU_API cuMemcpyAsync(cu_ptr dst, cu_ptr src, size_t bytes, void *stream)
{
	cu_copy3d copy = unified(dst, src, bytes);
	return submit(&copy, stream);
}

CU_API cuMemcpyHtoD_v2(cu_ptr dst, const void *src, size_t bytes)
{
	cu_copy3d copy = host_to_device(dst, src, bytes);
	return run_now(&copy);
}

CU_API cuMemcpyHtoDAsync_v2(cu_ptr dst, const void *src, size_t bytes, void *stream)
{
	cu_copy3d copy = host_to_device(dst, src, bytes);
	return submit(&copy, stream);
}

CU_API cuMemcpyDtoH_v2(void *dst, cu_ptr src, size_t bytes)
{
	cu_copy3d copy = device_to_host(dst, src, bytes);
	return run_now(&copy);
}

CU_API cuMemcpyDtoHAsync_v2(void *dst, cu_ptr src, size_t bytes, void *stream)
{
	cu_copy3d copy = device_to_host(dst, src, bytes);
	return submit(&copy, stream);
}

CU_API cuMemcpyDtoD_v2(cu_ptr dst, cu_ptr src, size_t bytes)
{
	cu_copy3d copy = device_to_device(dst, src, bytes);
	return run_now(&copy);
}

CU_API cuMemcpyDtoDAsync_v2(cu_ptr dst, cu_ptr src, size_t bytes, void *stream)
{
	cu_copy3d copy = device_to_device(dst, src, bytes);
	return submit(&copy, stream);
}

CU_API cuMemcpyPeer(cu_ptr dst, void *dst_context, cu_ptr src, void *src_context, size_t bytes)
{
	(void)dst_context, (void)src_context;
	return cuMemcpyDtoD_v2(dst, src, bytes);
}

CU_API cuMemcpyPeerAsync(cu_ptr dst, void *dst_context, cu_ptr src, void *src_context, size_t bytes, void *stream)
{
	(void)dst_context, (void)src_context;
	return cuMemcpyDtoDAsync_v2(dst, src, bytes, stream);
}

CU_API cuMemcpyDtoA_v2(void *dst, size_t at, cu_ptr src, size_t bytes)
{
	cu_copy3d copy = device_to_device(0, src, bytes);
	copy.dst_type = CU_MEMORY_ARRAY, copy.dst_array = dst, copy.dst_x = at;
	return run_now(&copy);
}

CU_API cuMemcpyAtoD_v2(cu_ptr dst, void *src, size_t at, size_t bytes)
{
	cu_copy3d copy = device_to_device(dst, 0, bytes);
	copy.src_type = CU_MEMORY_ARRAY, copy.src_array = src, copy.src_x = at;
	return run_now(&copy);
}

static cu_copy3d host_to_array(void *dst, size_t at, const void *src, size_t bytes)
{
	cu_copy3d copy = host_to_device(0, src, bytes);
	copy.dst_type = CU_MEMORY_ARRAY, copy.dst_array = dst, copy.dst_x = at;
	return copy;
}

static cu_copy3d array_to_host(void *dst, void *src, size_t at, size_t bytes)
{
	cu_copy3d copy = device_to_host(dst, 0, bytes);
	copy.src_type = CU_MEMORY_ARRAY, copy.src_array = src, copy.src_x = at;
	return copy;
}

CU_API cuMemcpyHtoA_v2(void *dst, size_t at, const void *src, size_t bytes)
{
	cu_copy3d copy = host_to_array(dst, at, src, bytes);
	return run_now(&copy);
}

CU_API cuMemcpyHtoAAsync_v2(void *dst, size_t at, const void *src, size_t bytes, void *stream)
{
	cu_copy3d copy = host_to_array(dst, at, src, bytes);
	return submit(&copy, stream);
}

CU_API cuMemcpyAtoH_v2(void *dst, void *src, size_t at, size_t bytes)
{
	cu_copy3d copy = array_to_host(dst, src, at, bytes);
	return run_now(&copy);
}

CU_API cuMemcpyAtoHAsync_v2(void *dst, void *src, size_t at, size_t bytes, void *stream)
{
	cu_copy3d copy = array_to_host(dst, src, at, bytes);
	return submit(&copy, stream);
}

CU_API cuMemcpyAtoA_v2(void *dst, size_t dst_at, void *src, size_t src_at, size_t bytes)
{
	cu_copy3d copy = device_to_device(0, 0, bytes);
	copy.dst_type = CU_MEMORY_ARRAY, copy.dst_array = dst, copy.dst_x = dst_at;
	copy.src_type = CU_MEMORY_ARRAY, copy.src_array = src, copy.src_x = src_at;
	return run_now(&copy);
}

static cu_copy3d from_2d(const cu_copy2d *c)
{
	return (cu_copy3d){
		.src_x = c->src_x, .src_y = c->src_y, .src_type = c->src_type, .src_host = c->src_host,
		.src_device = c->src_device, .src_array = c->src_array, .src_pitch = c->src_pitch,
		.dst_x = c->dst_x, .dst_y = c->dst_y, .dst_type = c->dst_type, .dst_host = c->dst_host,
		.dst_device = c->dst_device, .dst_array = c->dst_array, .dst_pitch = c->dst_pitch,
		.width = c->width, .height = c->height, .depth = 1,
	};
}

CU_API cuMemcpy2D_v2(const cu_copy2d *request)
{
	NC_TRY(nc_init_check());
	if (!request)
		return CU_INVALID_VALUE;
	cu_copy3d copy = from_2d(request);
	return run_now(&copy);
}

CU_API cuMemcpy2DUnaligned_v2(const cu_copy2d *request) { return cuMemcpy2D_v2(request); }

CU_API cuMemcpy2DAsync_v2(const cu_copy2d *request, void *stream)
{
	NC_TRY(nc_init_check());
	if (!request)
		return CU_INVALID_VALUE;
	cu_copy3d copy = from_2d(request);
	return submit(&copy, stream);
}

CU_API cuMemcpy3D_v2(const cu_copy3d *request)
{
	NC_TRY(nc_init_check());
	return request ? run_now(request) : CU_INVALID_VALUE;
}

CU_API cuMemcpy3DAsync_v2(const cu_copy3d *request, void *stream)
{
	NC_TRY(nc_init_check());
	return request ? submit(request, stream) : CU_INVALID_VALUE;
}

CU_API cuMemcpy3DPeer(const cu_copy3d *request) { return cuMemcpy3D_v2(request); }
CU_API cuMemcpy3DPeerAsync(const cu_copy3d *request, void *stream) { return cuMemcpy3DAsync_v2(request, stream); }

// Stops at the first copy that fails and says which one it was.
static cu_result batch(cu_ptr *dsts, cu_ptr *srcs, size_t *sizes, size_t count, size_t *failed, void *stream)
{
	if (!dsts || !srcs || !sizes || !count)
		return CU_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		cu_result result = cuMemcpyAsync(dsts[i], srcs[i], sizes[i], stream);
		if (result == CU_OK)
			continue;
		if (failed)
			*failed = i;
		return result;
	}
	return CU_OK;
}

CU_API cuMemcpyBatchAsync(cu_ptr *dsts, cu_ptr *srcs, size_t *sizes, size_t count, cu_copy_attributes *attributes,
                          size_t *indices, size_t attribute_count, size_t *failed, void *stream)
{
	(void)attributes, (void)indices, (void)attribute_count;
	return batch(dsts, srcs, sizes, count, failed, stream);
}

CU_API cuMemcpyBatchAsync_v2(cu_ptr *dsts, cu_ptr *srcs, size_t *sizes, size_t count, cu_copy_attributes *attributes,
                             size_t *indices, size_t attribute_count, void *stream)
{
	(void)attributes, (void)indices, (void)attribute_count;
	return batch(dsts, srcs, sizes, count, NULL, stream);
}

CU_API cuMemcpyWithAttributesAsync(cu_ptr dst, cu_ptr src, size_t bytes, cu_copy_attributes *attributes, void *stream)
{
	(void)attributes;
	return cuMemcpyAsync(dst, src, bytes, stream);
}
