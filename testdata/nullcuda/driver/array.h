// CUDA arrays: opaque memory reached through copies and textures only. Stored
// row by row without padding.
#ifndef NULLCUDA_ARRAY_H
#define NULLCUDA_ARRAY_H

#include "ledger.h"
#include "object.h"

struct nc_array {
	struct nc_object object;
	cu_array3d_desc desc;
	int device;
	size_t element; // bytes of one element, all channels
	size_t bytes;   // of the data
	size_t charged; // 0: the memory belongs to a mipmapped array
	char *data;
	struct nc_mipmap *parent;
};

void nc_array_destroy(void *array);
void nc_mipmap_destroy(void *mipmap);

#endif
