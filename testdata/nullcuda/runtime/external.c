// Memory of other APIs: the runtime's descriptions into the driver's.
#include "runtime.h"

#include <string.h>

static int import(void **memory, const rt_external_memory *in)
{
	RT_TRY(rt_enter());
	if (!memory || !in)
		return RT_INVALID_VALUE;
	cu_external_memory desc = {.type = in->type, .size = in->size, .flags = in->flags};
	memcpy(&desc.win32, &in->handle, sizeof in->handle);
	return rt_calls->cuImportExternalMemory(memory, &desc);
}

static int map_buffer(cu_ptr *address, void *memory, const rt_external_buffer *in)
{
	RT_TRY(rt_enter());
	if (!address || !in)
		return RT_INVALID_VALUE;
	const cu_external_buffer desc = {.offset = in->offset, .size = in->size, .flags = in->flags};
	return rt_calls->cuExternalMemoryGetMappedBuffer(address, memory, &desc);
}

static int map_mipmap(void **mipmap, void *memory, const rt_external_mipmap *in)
{
	RT_TRY(rt_enter());
	if (!mipmap || !in)
		return RT_INVALID_VALUE;
	cu_external_mipmap desc = {
		.offset = in->offset, .levels = in->levels,
		.array = {in->extent.width, in->extent.height, in->extent.depth, 0, 0, in->flags},
	};
	RT_TRY(rt_channel_to_driver(&in->channel, &desc.array.format, &desc.array.channels));
	return rt_calls->cuExternalMemoryGetMappedMipmappedArray(mipmap, memory, &desc);
}

RT_API cudaImportExternalMemory(void **memory, const rt_external_memory *desc) { return rt_done(import(memory, desc)); }

RT_API cudaExternalMemoryGetMappedBuffer(cu_ptr *address, void *memory, const rt_external_buffer *desc)
{
	return rt_done(map_buffer(address, memory, desc));
}

RT_API cudaExternalMemoryGetMappedMipmappedArray(void **mipmap, void *memory, const rt_external_mipmap *desc)
{
	return rt_done(map_mipmap(mipmap, memory, desc));
}
