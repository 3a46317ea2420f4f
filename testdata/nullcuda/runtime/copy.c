// Copies between pointers: linear, pitched, three-dimensional, between devices
// and to and from variables.
#include "copy.h"
#include "registry.h"
#include "runtime.h"

static int linear(void *destination, const void *source, size_t bytes, int kind)
{
	RT_TRY(rt_enter());
	cu_ptr to = (cu_ptr)destination, from = (cu_ptr)source;
	if (kind < RT_HOST_TO_HOST || kind > RT_COPY_DEFAULT)
		return RT_INVALID_MEMCPY_DIRECTION;
	if (!bytes)
		return RT_OK;
	switch (kind) {
	case RT_HOST_TO_DEVICE: return rt_calls->cuMemcpyHtoD(to, source, bytes);
	case RT_DEVICE_TO_HOST: return rt_calls->cuMemcpyDtoH(destination, from, bytes);
	case RT_DEVICE_TO_DEVICE: return rt_calls->cuMemcpyDtoD(to, from, bytes);
	default: return rt_calls->cuMemcpy(to, from, bytes);
	}
}

static int linear_async(void *destination, const void *source, size_t bytes, int kind, void *stream)
{
	RT_TRY(rt_enter());
	cu_ptr to = (cu_ptr)destination, from = (cu_ptr)source;
	if (kind < RT_HOST_TO_HOST || kind > RT_COPY_DEFAULT)
		return RT_INVALID_MEMCPY_DIRECTION;
	if (!bytes)
		return RT_OK;
	switch (kind) {
	case RT_HOST_TO_DEVICE: return rt_calls->cuMemcpyHtoDAsync(to, source, bytes, stream);
	case RT_DEVICE_TO_HOST: return rt_calls->cuMemcpyDtoHAsync(destination, from, bytes, stream);
	case RT_DEVICE_TO_DEVICE: return rt_calls->cuMemcpyDtoDAsync(to, from, bytes, stream);
	default: return rt_calls->cuMemcpyAsync(to, from, bytes, stream);
	}
}

RT_API RT_PTDS(cudaMemcpy)(void *destination, const void *source, size_t bytes, int kind)
{
	return rt_done(linear(destination, source, bytes, kind));
}

RT_API RT_PTSZ(cudaMemcpyAsync)(void *destination, const void *source, size_t bytes, int kind, void *stream)
{
	return rt_done(linear_async(destination, source, bytes, kind, stream));
}

#if RT_MAJOR >= 12
// Attributes only say when sources may be read; here that is always at once.
static int batch(void *const *destinations, const void *const *sources, const size_t *sizes, size_t count, void *stream,
                 size_t *failed)
{
	RT_TRY(rt_enter());
	if (!destinations || !sources || !sizes || !count)
		return RT_INVALID_VALUE;
	for (*failed = 0; *failed < count; ++*failed)
		RT_TRY(linear_async(destinations[*failed], sources[*failed], sizes[*failed], RT_COPY_DEFAULT, stream));
	return RT_OK;
}

#if RT_MAJOR == 12
RT_API RT_PTSZ(cudaMemcpyBatchAsync)(void **destinations, void **sources, size_t *sizes, size_t count, void *attributes,
                                    size_t *attribute_indexes, size_t attribute_count, size_t *failed, void *stream)
{
	size_t at = SIZE_MAX;
	(void)attributes, (void)attribute_indexes, (void)attribute_count;
	int error = batch(destinations, (const void *const *)sources, sizes, count, stream, &at);
	if (error != RT_OK && failed)
		*failed = at;
	return rt_done(error);
}
#else
RT_API RT_PTSZ(cudaMemcpyBatchAsync)(void *const *destinations, const void *const *sources, const size_t *sizes,
	size_t count, void *attributes, size_t *attribute_indexes, size_t attribute_count, void *stream)
{
	size_t at;
	(void)attributes, (void)attribute_indexes, (void)attribute_count;
	return rt_done(batch(destinations, sources, sizes, count, stream, &at));
}

RT_API RT_PTSZ(cudaMemcpyWithAttributesAsync)(
	void *destination, const void *source, size_t bytes, void *attributes, void *stream)
{
	(void)attributes;
	return rt_done(linear_async(destination, source, bytes, RT_COPY_DEFAULT, stream));
}
#endif
#endif

static int pitched(cu_copy2d *copy, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                   size_t height, int kind)
{
	RT_TRY(rt_enter());
	*copy = (cu_copy2d){
		.src_host = from, .src_device = (cu_ptr)from, .src_pitch = from_pitch,
		.dst_host = to, .dst_device = (cu_ptr)to, .dst_pitch = to_pitch,
		.width = width, .height = height,
	};
	return rt_copy_ends(kind, &copy->src_type, &copy->dst_type);
}

RT_API RT_PTDS(cudaMemcpy2D)(
	void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind)
{
	cu_copy2d copy;
	int error = pitched(&copy, to, to_pitch, from, from_pitch, width, height, kind);
	if (error == RT_OK && width && height)
		error = rt_calls->cuMemcpy2DUnaligned(&copy);
	return rt_done(error);
}

RT_API RT_PTSZ(cudaMemcpy2DAsync)(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                 size_t height, int kind, void *stream)
{
	cu_copy2d copy;
	int error = pitched(&copy, to, to_pitch, from, from_pitch, width, height, kind);
	if (error == RT_OK && width && height)
		error = rt_calls->cuMemcpy2DAsync(&copy, stream);
	return rt_done(error);
}

static int solid(const rt_copy3d *in, cu_copy3d *copy)
{
	RT_TRY(rt_enter());
	return in ? rt_copy3d_to_driver(in, copy) : RT_INVALID_VALUE;
}

RT_API RT_PTDS(cudaMemcpy3D)(const rt_copy3d *in)
{
	cu_copy3d copy;
	int error = solid(in, &copy);
	return rt_done(error == RT_OK ? rt_calls->cuMemcpy3D(&copy) : error);
}

RT_API RT_PTSZ(cudaMemcpy3DAsync)(const rt_copy3d *in, void *stream)
{
	cu_copy3d copy;
	int error = solid(in, &copy);
	return rt_done(error == RT_OK ? rt_calls->cuMemcpy3DAsync(&copy, stream) : error);
}

static int solid_peer(const rt_copy3d_peer *in, cu_copy3d *copy)
{
	RT_TRY(rt_enter());
	if (!in)
		return RT_INVALID_VALUE;
	const rt_copy3d plain = {
		.src_array = in->src_array, .src_pos = in->src_pos, .src_ptr = in->src_ptr,
		.dst_array = in->dst_array, .dst_pos = in->dst_pos, .dst_ptr = in->dst_ptr,
		.extent = in->extent, .kind = RT_DEVICE_TO_DEVICE,
	};
	RT_TRY(rt_copy3d_to_driver(&plain, copy));
	RT_TRY(rt_primary(in->src_device, &copy->src_context));
	return rt_primary(in->dst_device, &copy->dst_context);
}

RT_API RT_PTDS(cudaMemcpy3DPeer)(const rt_copy3d_peer *in)
{
	cu_copy3d copy;
	int error = solid_peer(in, &copy);
	return rt_done(error == RT_OK ? rt_calls->cuMemcpy3DPeer(&copy) : error);
}

RT_API RT_PTSZ(cudaMemcpy3DPeerAsync)(const rt_copy3d_peer *in, void *stream)
{
	cu_copy3d copy;
	int error = solid_peer(in, &copy);
	return rt_done(error == RT_OK ? rt_calls->cuMemcpy3DPeerAsync(&copy, stream) : error);
}

#ifndef RT_THREAD_STREAM // the copies between devices have no twins
static int peers(int to_device, int from_device, void **to, void **from)
{
	RT_TRY(rt_enter());
	RT_TRY(rt_primary(to_device, to));
	return rt_primary(from_device, from);
}

RT_API cudaMemcpyPeer(cu_ptr destination, int to_device, cu_ptr source, int from_device, size_t bytes)
{
	void *to, *from;
	int error = peers(to_device, from_device, &to, &from);
	if (error == RT_OK && bytes)
		error = rt_calls->cuMemcpyPeer(destination, to, source, from, bytes);
	return rt_done(error);
}

RT_API cudaMemcpyPeerAsync(
	cu_ptr destination, int to_device, cu_ptr source, int from_device, size_t bytes, void *stream)
{
	void *to, *from;
	int error = peers(to_device, from_device, &to, &from);
	if (error == RT_OK && bytes)
		error = rt_calls->cuMemcpyPeerAsync(destination, to, source, from, bytes, stream);
	return rt_done(error);
}
#endif

// The part of a variable that a copy touches.
static int variable_part(const void *symbol, size_t offset, size_t bytes, char **address)
{
	struct rt_variable variable;
	RT_TRY(rt_enter());
	RT_TRY(rt_variable_find(symbol, &variable));
	if (offset > variable.size || bytes > variable.size - offset)
		return RT_INVALID_VALUE;
	*address = (char *)variable.address + offset;
	return RT_OK;
}

// Variables lie in host pages, which the driver tells apart by itself.
static int variable_kind(int kind, int wrong)
{
	return kind == wrong || kind == RT_HOST_TO_HOST ? -1 : RT_COPY_DEFAULT;
}

RT_API RT_PTDS(cudaMemcpyToSymbol)(const void *symbol, const void *source, size_t bytes, size_t offset, int kind)
{
	char *address;
	int error = variable_part(symbol, offset, bytes, &address);
	return rt_done(error == RT_OK ? linear(address, source, bytes, variable_kind(kind, RT_DEVICE_TO_HOST)) : error);
}

RT_API RT_PTDS(cudaMemcpyFromSymbol)(void *destination, const void *symbol, size_t bytes, size_t offset, int kind)
{
	char *address;
	int error = variable_part(symbol, offset, bytes, &address);
	return rt_done(
		error == RT_OK ? linear(destination, address, bytes, variable_kind(kind, RT_HOST_TO_DEVICE)) : error);
}

RT_API RT_PTSZ(cudaMemcpyToSymbolAsync)(
	const void *symbol, const void *source, size_t bytes, size_t offset, int kind, void *stream)
{
	char *address;
	int error = variable_part(symbol, offset, bytes, &address);
	if (error == RT_OK)
		error = linear_async(address, source, bytes, variable_kind(kind, RT_DEVICE_TO_HOST), stream);
	return rt_done(error);
}

RT_API RT_PTSZ(cudaMemcpyFromSymbolAsync)(
	void *destination, const void *symbol, size_t bytes, size_t offset, int kind, void *stream)
{
	char *address;
	int error = variable_part(symbol, offset, bytes, &address);
	if (error == RT_OK)
		error = linear_async(destination, address, bytes, variable_kind(kind, RT_HOST_TO_DEVICE), stream);
	return rt_done(error);
}
