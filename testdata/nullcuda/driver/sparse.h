// Sparse arrays: no memory of their own; cuMemMapArrayAsync puts parts of VMM handles
// under their tiles, and those pay.
#ifndef NULLCUDA_SPARSE_H
#define NULLCUDA_SPARSE_H

#include "driver.h"

struct nc_sparse;

// The tiles of an array (one level) or a mipmapped one. `bytes` is the size of all
// levels. Frees nothing on failure. nc_lock held, as for all functions here.
cu_result nc_sparse_new(const cu_array3d_desc *desc, unsigned levels, size_t element, size_t bytes,
                        struct nc_sparse **out);

// Unmaps every tile.
void nc_sparse_free(struct nc_sparse *sparse);

#endif
