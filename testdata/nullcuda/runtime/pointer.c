// cudaPointerGetAttributes: what the driver knows about an address.
#include "runtime.h"

#include <string.h>

enum { MEMORY_TYPE = 2, DEVICE_POINTER = 3, HOST_POINTER = 4, IS_MANAGED = 8, DEVICE_ORDINAL = 9 };

static int get(rt_pointer_attributes *out, const void *address)
{
	RT_TRY(rt_enter());
	if (!out)
		return RT_INVALID_VALUE;
	unsigned type = 0, managed = 0;
	int device = RT_INVALID_DEVICE_ID;
	void *device_pointer = NULL, *host_pointer = NULL;
	int names[] = {MEMORY_TYPE, DEVICE_POINTER, HOST_POINTER, IS_MANAGED, DEVICE_ORDINAL};
	void *values[] = {&type, &device_pointer, &host_pointer, &managed, &device};
	// Unlike its singular form this driver call succeeds for unknown addresses.
	RT_TRY(rt_calls->cuPointerGetAttributes(5, names, values, (cu_ptr)address));
	memset(out, 0, sizeof *out);
	if (!type) {
		*out = (rt_pointer_attributes){.device = RT_INVALID_DEVICE_ID, .host_pointer = (void *)address};
		return RT_OK;
	}
	out->type = managed ? RT_MEMORY_MANAGED : type == CU_MEMORY_HOST ? RT_MEMORY_HOST : RT_MEMORY_DEVICE;
	out->device = device;
	out->device_pointer = device_pointer;
	out->host_pointer = host_pointer;
	return RT_OK;
}

RT_API cudaPointerGetAttributes(rt_pointer_attributes *out, const void *address) { return rt_done(get(out, address)); }
