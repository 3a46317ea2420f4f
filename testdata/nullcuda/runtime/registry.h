// What compiled programs register at load: fat binaries, their kernels and
// their variables, found again by the address of the host-side stand-in.
#ifndef NULLCUDART_REGISTRY_H
#define NULLCUDART_REGISTRY_H

#include <stddef.h>

struct rt_kernel {
	const char *name;
	void *handle; // the driver's kernel, valid in every context
};

struct rt_variable {
	void *address; // of the calling thread's device
	size_t size;
};

// RT_INVALID_DEVICE_FUNCTION if nothing of that address is registered. The
// first use of a fat binary loads it into the driver.
int rt_kernel_find(const void *host, struct rt_kernel *out);

// RT_INVALID_SYMBOL if nothing of that address is registered.
int rt_variable_find(const void *host, struct rt_variable *out);

#endif
