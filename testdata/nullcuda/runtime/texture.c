// Texture and surface objects: kept and answered, never sampled.
#include "runtime.h"

#include <stdlib.h>

struct sampler {
	enum { TEXTURE = 0x7e87, SURFACE = 0x5f5f } tag;
	rt_resource resource;
	rt_texture texture;
	rt_resource_view view;
	bool has_view;
};

static int create(unsigned long long *object, const rt_resource *resource, const rt_texture *texture,
                  const rt_resource_view *view)
{
	RT_TRY(rt_enter());
	if (!object || !resource)
		return RT_INVALID_VALUE;
	struct sampler *sampler = calloc(1, sizeof *sampler);
	if (!sampler)
		return RT_OUT_OF_MEMORY;
	sampler->tag = texture ? TEXTURE : SURFACE;
	sampler->resource = *resource;
	if (texture)
		sampler->texture = *texture;
	if (view)
		sampler->view = *view;
	sampler->has_view = view;
	*object = (uintptr_t)sampler;
	return RT_OK;
}

static struct sampler *find(unsigned long long object, int tag)
{
	struct sampler *sampler = (struct sampler *)(uintptr_t)object;
	return sampler && (int)sampler->tag == tag ? sampler : NULL;
}

static int destroy(unsigned long long object, int tag)
{
	RT_TRY(rt_enter());
	if (!object)
		return RT_OK;
	struct sampler *sampler = find(object, tag);
	if (!sampler)
		return RT_INVALID_VALUE;
	sampler->tag = 0;
	free(sampler);
	return RT_OK;
}

static int get_resource(rt_resource *out, unsigned long long object, int tag)
{
	struct sampler *sampler = find(object, tag);
	if (!sampler || !out)
		return RT_INVALID_VALUE;
	*out = sampler->resource;
	return RT_OK;
}

RT_API cudaCreateTextureObject(unsigned long long *object, const rt_resource *resource, const rt_texture *texture,
                               const rt_resource_view *view)
{
	return rt_done(texture ? create(object, resource, texture, view) : RT_INVALID_VALUE);
}

RT_API cudaCreateSurfaceObject(unsigned long long *object, const rt_resource *resource)
{
	return rt_done(create(object, resource, NULL, NULL));
}

RT_API cudaDestroyTextureObject(unsigned long long object) { return rt_done(destroy(object, TEXTURE)); }
RT_API cudaDestroySurfaceObject(unsigned long long object) { return rt_done(destroy(object, SURFACE)); }

RT_API cudaGetTextureObjectResourceDesc(rt_resource *out, unsigned long long object)
{
	return rt_done(get_resource(out, object, TEXTURE));
}

RT_API cudaGetSurfaceObjectResourceDesc(rt_resource *out, unsigned long long object)
{
	return rt_done(get_resource(out, object, SURFACE));
}

RT_API cudaGetTextureObjectTextureDesc(rt_texture *out, unsigned long long object)
{
	struct sampler *sampler = find(object, TEXTURE);
	if (!sampler || !out)
		return rt_done(RT_INVALID_VALUE);
	*out = sampler->texture;
	return RT_OK;
}

RT_API cudaGetTextureObjectResourceViewDesc(rt_resource_view *out, unsigned long long object)
{
	struct sampler *sampler = find(object, TEXTURE);
	if (!sampler || !out || !sampler->has_view)
		return rt_done(RT_INVALID_VALUE);
	*out = sampler->view;
	return RT_OK;
}
