// Copies and fills as values: what a call asks for, checked and carried out
// apart, so that a graph node can keep one and run it later.
#ifndef NULLCUDA_COPY_H
#define NULLCUDA_COPY_H

#include "driver.h"

// Runs a copy or fill. Bounds are checked under nc_lock, which is not held while
// bytes move. CU_INVALID_VALUE when a device address is not live memory.
cu_result nc_copy_run(const cu_copy3d *copy);
cu_result nc_fill_run(const cu_memset_node *fill);

// A linear copy between two unified addresses, in the 3D form.
cu_copy3d nc_copy_linear(cu_ptr destination, cu_ptr source, size_t bytes);

#endif
