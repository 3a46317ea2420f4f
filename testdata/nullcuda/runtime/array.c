// CUDA arrays: channel descriptors against the driver's formats.
#include "runtime.h"

#include <string.h>

enum { KIND_SIGNED, KIND_UNSIGNED, KIND_FLOAT };
enum {
	FORMAT_U8 = 0x01,
	FORMAT_U16,
	FORMAT_U32,
	FORMAT_S8 = 0x08,
	FORMAT_S16,
	FORMAT_S32,
	FORMAT_HALF = 0x10,
	FORMAT_FLOAT = 0x20
};

static int format_of(int kind, int bits)
{
	if (kind == KIND_FLOAT)
		return bits == 16 ? FORMAT_HALF : bits == 32 ? FORMAT_FLOAT : 0;
	int base = kind == KIND_SIGNED ? FORMAT_S8 : kind == KIND_UNSIGNED ? FORMAT_U8 : 0;
	int step = bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : -1;
	return base && step >= 0 ? base + step : 0;
}

// Components are all alike and fill the descriptor from the front.
int rt_channel_to_driver(const rt_channel *channel, int *format, unsigned *channels)
{
	if (!channel)
		return RT_INVALID_VALUE;
	const int bits[] = {channel->x, channel->y, channel->z, channel->w};
	unsigned count = 0;
	while (count < 4 && bits[count])
		count++;
	for (unsigned i = 0; i < 4; i++)
		if (bits[i] != (i < count ? channel->x : 0))
			return RT_INVALID_CHANNEL_DESCRIPTOR;
	*format = format_of(channel->kind, channel->x);
	*channels = count;
	return *format && (count == 1 || count == 2 || count == 4) ? RT_OK : RT_INVALID_CHANNEL_DESCRIPTOR;
}

static int from_driver(const cu_array3d_desc *desc, rt_channel *channel)
{
	int bits, kind;
	switch (desc->format) {
	case FORMAT_HALF: bits = 16, kind = KIND_FLOAT; break;
	case FORMAT_FLOAT: bits = 32, kind = KIND_FLOAT; break;
	case FORMAT_U8:
	case FORMAT_U16:
	case FORMAT_U32: bits = 8 << (desc->format - FORMAT_U8), kind = KIND_UNSIGNED; break;
	case FORMAT_S8: case FORMAT_S16: case FORMAT_S32: bits = 8 << (desc->format - FORMAT_S8), kind = KIND_SIGNED; break;
	default: return RT_INVALID_CHANNEL_DESCRIPTOR;
	}
	*channel = (rt_channel){bits, desc->channels > 1 ? bits : 0, desc->channels > 2 ? bits : 0,
	                        desc->channels > 3 ? bits : 0, kind};
	return RT_OK;
}

static int create(void **array, const rt_channel *channel, rt_extent extent, unsigned flags)
{
	cu_array3d_desc desc = {extent.width, extent.height, extent.depth, 0, 0, flags};
	RT_TRY(rt_enter());
	if (!array)
		return RT_INVALID_VALUE;
	RT_TRY(rt_channel_to_driver(channel, &desc.format, &desc.channels));
	if (extent.depth || flags)
		return rt_calls->cuArray3DCreate(array, &desc);
	const cu_array_desc flat = {extent.width, extent.height, desc.format, desc.channels};
	return rt_calls->cuArrayCreate(array, &flat);
}

static int create_mipmapped(void **array, const rt_channel *channel, rt_extent extent, unsigned levels, unsigned flags)
{
	cu_array3d_desc desc = {extent.width, extent.height, extent.depth, 0, 0, flags};
	RT_TRY(rt_enter());
	if (!array)
		return RT_INVALID_VALUE;
	RT_TRY(rt_channel_to_driver(channel, &desc.format, &desc.channels));
	return rt_calls->cuMipmappedArrayCreate(array, &desc, levels);
}

static int info(rt_channel *channel, rt_extent *extent, unsigned *flags, void *array)
{
	cu_array3d_desc desc;
	rt_channel found;
	RT_TRY(rt_enter());
	RT_TRY(rt_calls->cuArray3DGetDescriptor(&desc, array));
	RT_TRY(from_driver(&desc, &found));
	if (channel)
		*channel = found;
	if (extent)
		*extent = (rt_extent){desc.width, desc.height, desc.depth};
	if (flags)
		*flags = desc.flags;
	return RT_OK;
}

static int destroy(void *array, bool mipmapped)
{
	RT_TRY(rt_enter());
	if (!array)
		return RT_OK;
	return mipmapped ? rt_calls->cuMipmappedArrayDestroy(array) : rt_calls->cuArrayDestroy(array);
}

static int linear_width(size_t *elements, const rt_channel *channel, int device)
{
	int format;
	unsigned channels;
	RT_TRY(rt_driver());
	RT_TRY(rt_channel_to_driver(channel, &format, &channels));
	return rt_calls->cuDeviceGetTexture1DLinearMaxWidth(elements, format, channels, device);
}

RT_API cudaMallocArray(void **array, const rt_channel *channel, size_t width, size_t height, unsigned flags)
{
	return rt_done(create(array, channel, (rt_extent){width, height, 0}, flags));
}

RT_API cudaMalloc3DArray(void **array, const rt_channel *channel, rt_extent extent, unsigned flags)
{
	return rt_done(create(array, channel, extent, flags));
}

RT_API cudaMallocMipmappedArray(
	void **array, const rt_channel *channel, rt_extent extent, unsigned levels, unsigned flags)
{
	return rt_done(create_mipmapped(array, channel, extent, levels, flags));
}

RT_API cudaFreeArray(void *array) { return rt_done(destroy(array, false)); }
RT_API cudaFreeMipmappedArray(void *array) { return rt_done(destroy(array, true)); }
RT_API cudaGetChannelDesc(rt_channel *channel, void *array) { return rt_done(info(channel, NULL, NULL, array)); }

RT_API cudaArrayGetInfo(rt_channel *channel, rt_extent *extent, unsigned *flags, void *array)
{
	return rt_done(info(channel, extent, flags, array));
}

RT_API cudaDeviceGetTexture1DLinearMaxWidth(size_t *elements, const rt_channel *channel, int device)
{
	return rt_done(linear_width(elements, channel, device));
}

RT_EXPORT rt_channel cudaCreateChannelDesc(int x, int y, int z, int w, int kind)
{
	return (rt_channel){x, y, z, w, kind};
}
