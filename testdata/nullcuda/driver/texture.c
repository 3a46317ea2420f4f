// Texture and surface objects: handles that remember what they were made from.
#include "context.h"
#include "object.h"

#include <string.h>

// Bytes of CUDA_RESOURCE_DESC, CUDA_TEXTURE_DESC and CUDA_RESOURCE_VIEW_DESC.
enum { RESOURCE_BYTES = 144, TEXTURE_BYTES = 104, VIEW_BYTES = 112 };

struct texture {
	struct nc_object object;
	unsigned char resource[RESOURCE_BYTES], texture[TEXTURE_BYTES], view[VIEW_BYTES];
};

static cu_result create(uint64_t *out, const void *resource, const void *texture, const void *view)
{
	NC_CURRENT(context);
	if (!out || !resource)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct texture *object = nc_object_new(NC_TEXTURE, sizeof *object, context);
	if (!object)
		return CU_OUT_OF_MEMORY;
	memcpy(object->resource, resource, RESOURCE_BYTES);
	if (texture)
		memcpy(object->texture, texture, TEXTURE_BYTES);
	if (view)
		memcpy(object->view, view, VIEW_BYTES);
	*out = (uintptr_t)object;
	return CU_OK;
}

static cu_result destroy(uint64_t handle)
{
	NC_ENTER();
	struct texture *object = nc_object_find((void *)handle, NC_TEXTURE);
	if (!object)
		return CU_INVALID_HANDLE;
	nc_object_delete(object);
	return CU_OK;
}

static cu_result get(void *out, uint64_t handle, size_t offset, size_t bytes)
{
	NC_TRY(nc_init_check());
	if (!out)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct texture *object = nc_object_find((void *)handle, NC_TEXTURE);
	if (!object)
		return CU_INVALID_HANDLE;
	memcpy(out, (char *)object + offset, bytes);
	return CU_OK;
}

CU_API cuTexObjectCreate(uint64_t *out, const void *resource, const void *texture, const void *view)
{
	NC_TRY(nc_init_check());
	return texture ? create(out, resource, texture, view) : CU_INVALID_VALUE;
}

CU_API cuTexObjectDestroy(uint64_t handle) { return destroy(handle); }
CU_API cuTexObjectGetResourceDesc(void *out, uint64_t handle)
{
	return get(out, handle, offsetof(struct texture, resource), RESOURCE_BYTES);
}
CU_API cuTexObjectGetTextureDesc(void *out, uint64_t handle)
{
	return get(out, handle, offsetof(struct texture, texture), TEXTURE_BYTES);
}
CU_API cuTexObjectGetResourceViewDesc(void *out, uint64_t handle)
{
	return get(out, handle, offsetof(struct texture, view), VIEW_BYTES);
}
CU_API cuSurfObjectCreate(uint64_t *out, const void *resource) { return create(out, resource, NULL, NULL); }
CU_API cuSurfObjectDestroy(uint64_t handle) { return destroy(handle); }
CU_API cuSurfObjectGetResourceDesc(void *out, uint64_t handle)
{
	return get(out, handle, offsetof(struct texture, resource), RESOURCE_BYTES);
}
