// Memory that graphs allocate: the address of an allocation node is fixed when
// the node is made, the memory exists from the first launch on, and stays
// reserved for the next launch after a free, until cuDeviceGraphMemTrim.
#ifndef NULLCUDA_GRAPH_MEMORY_H
#define NULLCUDA_GRAPH_MEMORY_H

#include "range.h"

// Fixes an address for an allocation of `bytes` on the device. nc_lock held, as
// for all functions here.
cu_result nc_graph_memory_reserve(int device, size_t bytes, cu_ptr *address);

// A launch allocates at a reserved address. CU_INVALID_VALUE while the memory of
// an earlier launch is not freed.
cu_result nc_graph_memory_begin(cu_ptr address, size_t bytes);

// The block is freed; its reserve stays.
void nc_graph_memory_end(struct nc_range *block);

// Gives back the reserve of freed blocks.
void nc_graph_memory_trim(int device);

#endif
