#include "array.h"
#include "context.h"
#include "memory.h"
#include "sparse.h"

#include <sys/mman.h>

enum { PAGE = 4096, EXTENT_MAX = 1 << 20 };

// Bytes of one channel, 0 for formats that are not a plain array of channels.
static size_t channel_bytes(int format)
{
	switch (format) {
	case 0x01: case 0x08: case 0xc0 ... 0xc2: case 0xc6 ... 0xc8: return 1;
	case 0x02: case 0x09: case 0x10: case 0xc3 ... 0xc5: case 0xc9 ... 0xcb: return 2;
	case 0x03: case 0x0a: case 0x20: return 4;
	default: return 0;
	}
}

static size_t at_least_one(size_t n) { return n ? n : 1; }

// Checks a descriptor and gives the size of an element and of the whole.
static cu_result measure(const cu_array3d_desc *desc, size_t *element, size_t *bytes)
{
	if (!desc->width || (desc->channels != 1 && desc->channels != 2 && desc->channels != 4))
		return CU_INVALID_VALUE;
	if (desc->width > EXTENT_MAX || desc->height > EXTENT_MAX || desc->depth > EXTENT_MAX)
		return CU_INVALID_VALUE;
	*element = channel_bytes(desc->format) * desc->channels;
	if (!*element)
		return CU_NOT_SUPPORTED;
	size_t plane = desc->width * at_least_one(desc->height) * *element;
	if (plane > NC_SIZE_MAX / at_least_one(desc->depth))
		return CU_OUT_OF_MEMORY;
	*bytes = plane * at_least_one(desc->depth);
	return CU_OK;
}

// Pages for `bytes`, charged to the device under the handle's address unless the array
// is sparse.
static cu_result store_new(int device, void *handle, size_t bytes, bool sparse, struct nc_store *out)
{
	enum nc_kind kind = sparse ? NC_SPARSE : NC_ARRAY;
	size_t mapped = nc_round_up(bytes, PAGE), charged = sparse ? 0 : nc_round_up(bytes, NC_UNIT);
	char *pages = nc_pages_new(mapped);
	if (!pages)
		return CU_OUT_OF_MEMORY;
	cu_result result = nc_ledger_alloc(device, kind, (uintptr_t)handle, bytes, charged);
	if (result != CU_OK)
		munmap(pages, mapped);
	else
		*out = (struct nc_store){kind, bytes, charged, pages, pages, mapped};
	return result;
}

static void store_release(int device, void *handle, const struct nc_store *store)
{
	if (!store->mapped)
		return;
	nc_ledger_free(device, store->kind, (uintptr_t)handle, store->bytes, store->charged);
	munmap(store->pages, store->mapped);
}

void nc_array_destroy(void *object)
{
	struct nc_array *array = object;
	if (array->sparse)
		nc_sparse_free(array->sparse);
	store_release(array->device, array, &array->store);
	nc_object_delete(array);
}

void nc_mipmap_destroy(void *object)
{
	struct nc_mipmap *mipmap = object;
	for (unsigned i = 0; i < mipmap->levels; i++)
		if (mipmap->level[i])
			nc_object_delete(mipmap->level[i]);
	if (mipmap->sparse)
		nc_sparse_free(mipmap->sparse);
	store_release(mipmap->device, mipmap, &mipmap->store);
	nc_object_delete(mipmap);
}

CU_API cuArray3DCreate_v2(void **handle, const cu_array3d_desc *desc)
{
	size_t element, bytes;
	NC_CURRENT(context);
	if (!handle || !desc)
		return CU_INVALID_VALUE;
	NC_TRY(measure(desc, &element, &bytes));
	NC_LOCKED();
	struct nc_array *array = nc_object_new(NC_ARRAY_OBJECT, sizeof *array, context);
	if (!array)
		return CU_OUT_OF_MEMORY;
	array->desc = *desc;
	array->device = context->device;
	array->element = element;
	array->bytes = bytes;
	bool sparse = nc_array_is_sparse(desc);
	cu_result result = sparse ? nc_sparse_new(desc, 1, element, bytes, &array->sparse) : CU_OK;
	if (result == CU_OK)
		result = store_new(array->device, array, bytes, sparse, &array->store);
	if (result != CU_OK) {
		nc_array_destroy(array);
		return result;
	}
	array->data = array->store.data;
	*handle = array;
	return CU_OK;
}

CU_API cuArrayCreate_v2(void **handle, const cu_array_desc *desc)
{
	NC_TRY(nc_init_check());
	if (!desc)
		return CU_INVALID_VALUE;
	const cu_array3d_desc full = {desc->width, desc->height, 0, desc->format, desc->channels, 0};
	return cuArray3DCreate_v2(handle, &full);
}

CU_API cuArrayDestroy(void *handle)
{
	NC_ENTER();
	struct nc_array *array = nc_object_find(handle, NC_ARRAY_OBJECT);
	if (!array || array->parent)
		return CU_INVALID_HANDLE;
	nc_array_destroy(array);
	return CU_OK;
}

CU_API cuArray3DGetDescriptor_v2(cu_array3d_desc *desc, void *handle)
{
	NC_ENTER();
	struct nc_array *array = nc_object_find(handle, NC_ARRAY_OBJECT);
	if (!array)
		return CU_INVALID_HANDLE;
	if (!desc)
		return CU_INVALID_VALUE;
	*desc = array->desc;
	return CU_OK;
}

CU_API cuArrayGetDescriptor_v2(cu_array_desc *desc, void *handle)
{
	cu_array3d_desc full;
	if (!desc)
		return CU_INVALID_VALUE;
	NC_TRY(cuArray3DGetDescriptor_v2(&full, handle));
	*desc = (cu_array_desc){full.width, full.height, full.format, full.channels};
	return CU_OK;
}

CU_API cuArrayGetMemoryRequirements(cu_array_requirements *out, void *handle, cu_device device)
{
	NC_TRY(nc_init_check());
	if (!out)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	NC_LOCKED();
	struct nc_array *array = nc_object_find(handle, NC_ARRAY_OBJECT);
	if (!array)
		return CU_INVALID_HANDLE;
	*out = (cu_array_requirements){.size = nc_round_up(array->bytes, NC_UNIT), .alignment = NC_UNIT};
	return CU_OK;
}

// Layers stay as many as they are.
cu_array3d_desc nc_array_level(const cu_array3d_desc *base, unsigned level)
{
	cu_array3d_desc desc = *base;
	desc.width = at_least_one(base->width >> level);
	desc.height = base->height ? at_least_one(base->height >> level) : 0;
	if (!(base->flags & CU_ARRAY_LAYERED))
		desc.depth = base->depth ? at_least_one(base->depth >> level) : 0;
	return desc;
}

// Makes the array objects of the levels and sets mipmap->bytes to their sum.
static cu_result make_levels(struct nc_mipmap *mipmap, struct nc_context *context, const cu_array3d_desc *desc)
{
	for (unsigned i = 0; i < mipmap->levels; i++) {
		// Owned through the mipmap, so the context's sweep does not see them.
		struct nc_array *array = nc_object_new(NC_ARRAY_OBJECT, sizeof *array, NULL);
		if (!array)
			return CU_OUT_OF_MEMORY;
		mipmap->level[i] = array;
		array->desc = nc_array_level(desc, i);
		array->device = context->device;
		array->parent = mipmap;
		NC_TRY(measure(&array->desc, &array->element, &array->bytes));
		mipmap->bytes += array->bytes;
	}
	return CU_OK;
}

cu_result nc_mipmap_new(
	struct nc_context *context, const cu_array3d_desc *desc, unsigned levels, struct nc_mipmap **out)
{
	size_t largest = desc->width | desc->height | desc->depth;
	unsigned useful = 0;
	while (largest >> useful && useful < NC_MIP_LEVELS_MAX)
		useful++;
	struct nc_mipmap *mipmap = nc_object_new(NC_MIPMAP, sizeof *mipmap, context);
	if (!mipmap)
		return CU_OUT_OF_MEMORY;
	mipmap->device = context->device;
	mipmap->levels = levels < useful ? levels : useful;
	cu_result result = mipmap->levels ? make_levels(mipmap, context, desc) : CU_INVALID_VALUE;
	if (result != CU_OK)
		nc_mipmap_destroy(mipmap);
	else
		*out = mipmap;
	return result;
}

void nc_mipmap_place(struct nc_mipmap *mipmap, const struct nc_store *store)
{
	char *data = store->data;
	mipmap->store = *store;
	for (unsigned i = 0; i < mipmap->levels; i++) {
		mipmap->level[i]->data = data;
		data += mipmap->level[i]->bytes;
	}
}

CU_API cuMipmappedArrayCreate(void **handle, const cu_array3d_desc *desc, unsigned levels)
{
	struct nc_mipmap *mipmap;
	struct nc_store store;
	NC_CURRENT(context);
	if (!handle || !desc || !levels)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	NC_TRY(nc_mipmap_new(context, desc, levels, &mipmap));
	bool sparse = nc_array_is_sparse(desc);
	cu_result result = CU_OK;
	if (sparse)
		result = nc_sparse_new(desc, mipmap->levels, mipmap->level[0]->element, mipmap->bytes, &mipmap->sparse);
	if (result == CU_OK)
		result = store_new(mipmap->device, mipmap, mipmap->bytes, sparse, &store);
	if (result != CU_OK) {
		nc_mipmap_destroy(mipmap);
		return result;
	}
	nc_mipmap_place(mipmap, &store);
	*handle = mipmap;
	return CU_OK;
}

CU_API cuMipmappedArrayGetLevel(void **array, void *handle, unsigned level)
{
	NC_ENTER();
	struct nc_mipmap *mipmap = nc_object_find(handle, NC_MIPMAP);
	if (!mipmap)
		return CU_INVALID_HANDLE;
	if (!array || level >= mipmap->levels)
		return CU_INVALID_VALUE;
	*array = mipmap->level[level];
	return CU_OK;
}

CU_API cuMipmappedArrayGetMemoryRequirements(cu_array_requirements *out, void *handle, cu_device device)
{
	NC_TRY(nc_init_check());
	if (!out)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	NC_LOCKED();
	struct nc_mipmap *mipmap = nc_object_find(handle, NC_MIPMAP);
	if (!mipmap)
		return CU_INVALID_HANDLE;
	*out = (cu_array_requirements){.size = nc_round_up(mipmap->bytes, NC_UNIT), .alignment = NC_UNIT};
	return CU_OK;
}

CU_API cuMipmappedArrayDestroy(void *handle)
{
	NC_ENTER();
	struct nc_mipmap *mipmap = nc_object_find(handle, NC_MIPMAP);
	if (!mipmap)
		return CU_INVALID_HANDLE;
	nc_mipmap_destroy(mipmap);
	return CU_OK;
}
