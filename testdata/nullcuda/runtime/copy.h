// Translation of runtime copies into the driver's.
#ifndef NULLCUDART_COPY_H
#define NULLCUDART_COPY_H

#include "abi.h"

// The memory types (CU_MEMORY_*) of both ends of a copy between pointers;
// RT_INVALID_MEMCPY_DIRECTION for an unknown kind.
int rt_copy_ends(int kind, int *source, int *destination);

int rt_copy3d_to_driver(const rt_copy3d *in, cu_copy3d *out);
int rt_copy3d_from_driver(const cu_copy3d *in, rt_copy3d *out);

// Bytes of one element of an array.
int rt_array_element(void *array, size_t *bytes);

#endif
