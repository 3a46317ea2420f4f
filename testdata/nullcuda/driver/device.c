#include "driver.h"

#include <stdio.h>

// Answers of a large data-centre GPU of compute capability 9.0. An attribute not
// listed is 0: a feature that the null GPU does not have.
static const int attributes[] = {
	[1] = 1024,                             // threads per block
	[2] = 1024, [3] = 1024, [4] = 64,       // block dimensions
	[5] = 2147483647, [6] = 65535, [7] = 65535, // grid dimensions
	[8] = 48 << 10,                         // shared memory per block
	[9] = 64 << 10,                         // constant memory
	[10] = 32,                              // warp
	[11] = 2147483647,                      // pitch
	[12] = 65536,                           // registers per block
	[13] = 1980000,                         // clock, kHz
	[14] = 512,                             // texture alignment
	[15] = 1,                               // copies overlap kernels
	[16] = 132,                             // multiprocessors
	[19] = 1,                               // maps host memory
	[21] = 131072, [22] = 131072, [23] = 65536, [24] = 16384, [25] = 16384, [26] = 16384, // textures
	[27] = 32768, [28] = 32768, [29] = 2048,
	[30] = 512,                             // surface alignment
	[31] = 1,                               // concurrent kernels
	[32] = 1,                               // ECC
	[36] = 2619000,                         // memory clock, kHz
	[37] = 5120,                            // memory bus, bits
	[38] = 50 << 20,                        // L2
	[39] = 2048,                            // threads per multiprocessor
	[40] = 3,                               // copy engines
	[41] = 1,                               // unified addressing
	[42] = 32768, [43] = 2048, [44] = 1, [45] = 32768, [46] = 32768,
	[47] = 8192, [48] = 8192, [49] = 32768,
	[51] = 32,                              // texture pitch alignment
	[52] = 32768, [53] = 32768, [54] = 2046,
	[55] = 32768, [56] = 131072, [57] = 65536, [58] = 16384, [59] = 16384, [60] = 16384, // surfaces
	[61] = 32768, [62] = 2048, [63] = 32768, [64] = 32768, [65] = 2048, [66] = 32768, [67] = 32768, [68] = 2046,
	[69] = 268435456, [70] = 131072, [71] = 65000, [72] = 2097120, [73] = 32768, [74] = 32768,
	[75] = 9, [76] = 0,                     // compute capability
	[77] = 32768,
	[78] = 1,                               // stream priorities
	[79] = 1, [80] = 1,                     // L1 caches
	[81] = 228 << 10, [82] = 65536,         // per multiprocessor: shared memory, registers
	[83] = 1,                               // managed memory
	[87] = 2,                               // single to double precision
	[89] = 1,                               // concurrent managed access
	[90] = 1,                               // preemption
	[91] = 1,                               // registered host pointers usable as they are
	[92] = 1, [93] = 1, [94] = 1,           // stream memory operations, first version
	[95] = 1,                               // cooperative launch
	[97] = 227 << 10,                       // shared memory per block, on request
	[98] = 1,                               // flushes remote writes
	[99] = 1,                               // host register
	[102] = 1,                              // virtual memory management
	[103] = 1,                              // handles as file descriptors
	[106] = 32,                             // blocks per multiprocessor
	[109] = 134213632,                      // access policy window
	[111] = 1024,                           // reserved shared memory per block
	[112] = 1,                              // sparse arrays
	[113] = 1,                              // read-only host register
	[115] = 1,                              // memory pools
	[119] = CU_HANDLE_FD,                   // handles that memory pools can be exported as
	[120] = 1,                              // cluster launch
	[121] = 1,                              // arrays whose memory is mapped later
	[122] = 1, [123] = 1,                   // stream memory operations
	[125] = 1,                              // IPC events
	[126] = 4,                              // memory synchronisation domains
	[127] = 1,                              // tensor maps
	[132] = 1,                              // multicast objects
	[134] = -1,                             // NUMA node: none
	[131] = -1,
};

enum { ATTRIBUTES = sizeof attributes / sizeof *attributes, ATTRIBUTE_LAST = 161 };
enum { PCI_BUS_ID = 33, MULTI_GPU_BOARD_GROUP = 85 };

CU_API cuDeviceGetAttribute(int *value, int attribute, cu_device device)
{
	NC_TRY(nc_init_check());
	if (!value || attribute < 1 || attribute > ATTRIBUTE_LAST)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	switch (attribute) {
	case PCI_BUS_ID: *value = nc_device_pci_bus(device); break;
	case MULTI_GPU_BOARD_GROUP: *value = device; break;
	default: *value = attribute < ATTRIBUTES ? attributes[attribute] : 0;
	}
	return CU_OK;
}

CU_API cuDeviceGetCount(int *count)
{
	NC_TRY(nc_init_check());
	if (!count)
		return CU_INVALID_VALUE;
	*count = nc_config()->devices;
	return CU_OK;
}

CU_API cuDeviceGet(cu_device *device, int ordinal)
{
	NC_TRY(nc_init_check());
	if (!device)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(ordinal))
		return CU_INVALID_DEVICE;
	*device = ordinal;
	return CU_OK;
}

CU_API cuDeviceGetName(char *name, int size, cu_device device)
{
	NC_TRY(nc_init_check());
	if (!name || size <= 0)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	snprintf(name, (size_t)size, "Null GPU");
	return CU_OK;
}

CU_API cuDeviceGetUuid(cu_uuid *uuid, cu_device device)
{
	NC_TRY(nc_init_check());
	if (!uuid)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	nc_device_uuid(device, false, uuid->bytes);
	return CU_OK;
}

// Unlike the first version it names the MIG instance that the device is.
CU_API cuDeviceGetUuid_v2(cu_uuid *uuid, cu_device device)
{
	NC_TRY(cuDeviceGetUuid(uuid, device));
	nc_device_uuid(device, nc_config()->nvml == NC_NVML_MIG, uuid->bytes);
	return CU_OK;
}

CU_API cuDeviceTotalMem_v2(size_t *bytes, cu_device device)
{
	NC_TRY(nc_init_check());
	if (!bytes)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	*bytes = nc_config()->device_bytes - nc_config()->reserved_bytes;
	return CU_OK;
}

CU_API cuDeviceComputeCapability(int *major, int *minor, cu_device device)
{
	NC_TRY(nc_init_check());
	if (!major || !minor)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	*major = attributes[75];
	*minor = attributes[76];
	return CU_OK;
}

CU_API cuDeviceGetProperties(cu_device_prop *prop, cu_device device)
{
	NC_TRY(nc_init_check());
	if (!prop)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	*prop = (cu_device_prop){
		.max_threads_per_block = attributes[1],
		.max_threads_dim = {attributes[2], attributes[3], attributes[4]},
		.max_grid_size = {attributes[5], attributes[6], attributes[7]},
		.shared_mem_per_block = attributes[8], .total_constant_memory = attributes[9],
		.simd_width = attributes[10], .mem_pitch = attributes[11], .regs_per_block = attributes[12],
		.clock_rate = attributes[13], .texture_align = attributes[14],
	};
	return CU_OK;
}

CU_API cuDeviceGetPCIBusId(char *text, int size, cu_device device)
{
	NC_TRY(nc_init_check());
	if (!text || size <= 0)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	return snprintf(text, (size_t)size, "0000:%02X:00.0", nc_device_pci_bus(device)) < size ? CU_OK : CU_INVALID_VALUE;
}

CU_API cuDeviceGetByPCIBusId(cu_device *device, const char *text)
{
	unsigned domain = 0, bus, slot, function = 0;
	NC_TRY(nc_init_check());
	if (!device || !text)
		return CU_INVALID_VALUE;
	if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
		domain = function = 0;
		if (sscanf(text, "%x:%x.%x", &bus, &slot, &function) < 2)
			return CU_INVALID_VALUE;
	}
	for (int i = 0; i < nc_config()->devices; i++)
		if (!domain && !slot && !function && bus == (unsigned)nc_device_pci_bus(i)) {
			*device = i;
			return CU_OK;
		}
	return CU_INVALID_DEVICE;
}

CU_API cuDeviceGetTexture1DLinearMaxWidth(size_t *width, int format, unsigned channels, cu_device device)
{
	(void)format, (void)channels;
	NC_TRY(nc_init_check());
	if (!width)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	*width = (size_t)attributes[69];
	return CU_OK;
}

CU_API cuDeviceGetExecAffinitySupport(int *supported, int type, cu_device device)
{
	(void)type;
	NC_TRY(nc_init_check());
	if (!supported)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	*supported = 0;
	return CU_OK;
}
