// CUDA arrays: opaque memory reached through copies and textures only. Stored
// row by row without padding.
#ifndef NULLCUDA_ARRAY_H
#define NULLCUDA_ARRAY_H

#include "ledger.h"
#include "object.h"

enum { NC_MIP_LEVELS_MAX = 32 };

// The memory of an array or of all levels of a mipmapped one.
struct nc_store {
	enum nc_kind kind; // NC_ARRAY, NC_SPARSE, or NC_IPC: another API's memory
	size_t bytes;      // of the data
	size_t charged;    // 0 unless NC_ARRAY
	char *data;
	void *pages;   // the mapping that holds the data
	size_t mapped; // its bytes, 0: no memory yet, or a level's, which lies in the mipmapped array's
};

struct nc_array {
	struct nc_object object;
	cu_array3d_desc desc;
	int device;
	size_t element; // bytes of one element, all channels
	size_t bytes;   // of the data
	char *data;
	struct nc_store store;
	struct nc_sparse *sparse; // NULL unless made to be backed tile by tile
	struct nc_mipmap *parent; // of which it is a level
};

struct nc_mipmap {
	struct nc_object object;
	int device;
	unsigned levels;
	size_t bytes;
	struct nc_store store;
	struct nc_sparse *sparse;
	struct nc_array *level[NC_MIP_LEVELS_MAX];
};

static inline bool nc_array_is_sparse(const cu_array3d_desc *desc)
{
	return desc->flags & (CU_ARRAY_SPARSE | CU_ARRAY_DEFERRED_MAPPING);
}

void nc_array_destroy(void *array);
void nc_mipmap_destroy(void *mipmap);

// What the level of a mipmapped array with this descriptor is.
cu_array3d_desc nc_array_level(const cu_array3d_desc *base, unsigned level);

// A mipmapped array with its levels and without memory. nc_lock held.
cu_result nc_mipmap_new(
	struct nc_context *context, const cu_array3d_desc *desc, unsigned levels, struct nc_mipmap **out);

// Gives it the memory in `store`, which it frees when it goes. nc_lock held.
void nc_mipmap_place(struct nc_mipmap *mipmap, const struct nc_store *store);

#endif
