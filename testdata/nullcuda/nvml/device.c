// Devices: which there are and what they are.
#include "nvml.h"

#include <stdio.h>
#include <string.h>

struct nvml_device {
	int index;
};

static struct nvml_device devices[NC_MAX_DEVICES] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
static struct nvml_device instances[NC_MAX_DEVICES] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};

static bool mig_enabled(void) { return nc_config()->nvml == NC_NVML_MIG; }

bool nvml_is_mig(nvml_device device) { return device >= instances && device < instances + NC_MAX_DEVICES; }

int nvml_check_device(nvml_device device, int *index)
{
	NVML_TRY(nvml_check());
	for (int i = 0; i < nc_config()->devices; i++)
		if (device == &devices[i] || (mig_enabled() && device == &instances[i])) {
			*index = i;
			return NVML_OK;
		}
	return NVML_INVALID_ARGUMENT;
}

NVML_API nvmlDeviceGetCount_v2(unsigned *count)
{
	NVML_TRY(nvml_check());
	if (!count)
		return NVML_INVALID_ARGUMENT;
	*count = (unsigned)nc_config()->devices;
	return NVML_OK;
}

NVML_API nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }

NVML_API nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device)
{
	NVML_TRY(nvml_check());
	if (!device || index >= (unsigned)nc_config()->devices)
		return NVML_INVALID_ARGUMENT;
	*device = &devices[index];
	return NVML_OK;
}

NVML_API nvmlDeviceGetHandleByIndex(unsigned index, nvml_device *device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

NVML_API nvmlDeviceGetHandleByUUID(const char *uuid, nvml_device *device)
{
	char text[41];
	NVML_TRY(nvml_check());
	if (!uuid || !device)
		return NVML_INVALID_ARGUMENT;
	for (int i = 0; i < nc_config()->devices; i++) {
		for (int mig = 0; mig <= mig_enabled(); mig++) {
			nc_device_uuid_text(i, mig, text);
			if (strcmp(text, uuid))
				continue;
			*device = mig ? &instances[i] : &devices[i];
			return NVML_OK;
		}
	}
	return NVML_NOT_FOUND;
}

NVML_API nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvml_device *device)
{
	unsigned domain = 0, bus, slot, function = 0;
	NVML_TRY(nvml_check());
	if (!id || !device)
		return NVML_INVALID_ARGUMENT;
	if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
		domain = function = 0;
		if (sscanf(id, "%x:%x.%x", &bus, &slot, &function) < 2)
			return NVML_INVALID_ARGUMENT;
	}
	for (int i = 0; i < nc_config()->devices; i++)
		if (!domain && !slot && !function && bus == (unsigned)nc_device_pci_bus(i)) {
			*device = &devices[i];
			return NVML_OK;
		}
	return NVML_NOT_FOUND;
}

NVML_API nvmlDeviceGetHandleByPciBusId(const char *id, nvml_device *device)
{
	return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

NVML_API nvmlDeviceGetName(nvml_device device, char *name, unsigned length)
{
	NVML_DEVICE(device);
	return nvml_copy_text(name, length, nvml_is_mig(device) ? "Null GPU MIG 1g" : "Null GPU");
}

NVML_API nvmlDeviceGetUUID(nvml_device device, char *uuid, unsigned length)
{
	char text[41];
	NVML_DEVICE(device);
	nc_device_uuid_text(index, nvml_is_mig(device), text);
	return nvml_copy_text(uuid, length, text);
}

// No fabric: a state of 0, "not supported". The caller's version says how long its structure is: 36 bytes, from version
// 3 on 40.
NVML_API nvmlDeviceGetGpuFabricInfoV(nvml_device device, unsigned *info)
{
	NVML_DEVICE(device);
	if (!info)
		return NVML_INVALID_ARGUMENT;
	unsigned version = *info >> 24, size = *info & 0xffffff;
	if (version < 2 || version > 3 || size != (version == 2 ? 36 : 40))
		return NVML_ARGUMENT_VERSION_MISMATCH;
	memset(info + 1, 0, size - sizeof *info);
	return NVML_OK;
}

// Answers with one number that depends on nothing but the device.
#define NUMBER(name, type, expression)                  \
	NVML_API name(nvml_device device, type *out)    \
	{                                               \
		NVML_DEVICE(device);                    \
		if (!out)                               \
			return NVML_INVALID_ARGUMENT;   \
		*out = (expression);                    \
		return NVML_OK;                         \
	}
NUMBER(nvmlDeviceGetIndex, unsigned, (unsigned)index)
NUMBER(nvmlDeviceGetMinorNumber, unsigned, (unsigned)index)
NUMBER(nvmlDeviceGetModuleId, unsigned, (unsigned)index)
NUMBER(nvmlDeviceGetBoardId, unsigned, (unsigned)nc_device_pci_bus(index) << 8)
NUMBER(nvmlDeviceGetMultiGpuBoard, unsigned, 0)
NUMBER(nvmlDeviceGetBrand, int, 0)           // unknown
NUMBER(nvmlDeviceGetPersistenceMode, int, 1) // as if kept ready: there is nothing to start
NUMBER(nvmlDeviceGetDisplayMode, int, 0)
NUMBER(nvmlDeviceGetDisplayActive, int, 0)
NUMBER(nvmlDeviceGetComputeMode, int, 0) // shared
NUMBER(nvmlDeviceGetArchitecture, unsigned, 9)
NUMBER(nvmlDeviceGetNumGpuCores, unsigned, 132 * 128)
NUMBER(nvmlDeviceGetMemoryBusWidth, unsigned, 5120)
NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned, mig_enabled())
NUMBER(nvmlDeviceIsMigDeviceHandle, unsigned, nvml_is_mig(device))

NVML_API nvmlDeviceGetMigMode(nvml_device device, unsigned *current, unsigned *pending)
{
	NVML_DEVICE(device);
	if (!current || !pending)
		return NVML_INVALID_ARGUMENT;
	*current = *pending = mig_enabled();
	return NVML_OK;
}

NVML_API nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned instance, nvml_device *out)
{
	NVML_DEVICE(device);
	if (!out || nvml_is_mig(device))
		return NVML_INVALID_ARGUMENT;
	if (!mig_enabled())
		return NVML_NOT_SUPPORTED;
	if (instance)
		return NVML_NOT_FOUND;
	*out = &instances[index];
	return NVML_OK;
}

NVML_API nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvml_device device, nvml_device *out)
{
	NVML_DEVICE(device);
	if (!out || !nvml_is_mig(device))
		return NVML_INVALID_ARGUMENT;
	*out = &devices[index];
	return NVML_OK;
}

// The one instance of each device, in the numbering that the driver begins with.
static int instance_id(nvml_device device, unsigned *out, unsigned id)
{
	NVML_DEVICE(device);
	if (!out)
		return NVML_INVALID_ARGUMENT;
	if (!nvml_is_mig(device))
		return NVML_NOT_SUPPORTED;
	*out = id;
	return NVML_OK;
}

NVML_API nvmlDeviceGetGpuInstanceId(nvml_device device, unsigned *id)
{
	return instance_id(device, id, NVML_GPU_INSTANCE);
}
NVML_API nvmlDeviceGetComputeInstanceId(nvml_device device, unsigned *id)
{
	return instance_id(device, id, NVML_COMPUTE_INSTANCE);
}

NVML_API nvmlDeviceGetCudaComputeCapability(nvml_device device, int *major, int *minor)
{
	NVML_DEVICE(device);
	if (!major || !minor)
		return NVML_INVALID_ARGUMENT;
	*major = 9;
	*minor = 0;
	return NVML_OK;
}

NVML_API nvmlDeviceGetPciInfo_v3(nvml_device device, nvml_pci *pci)
{
	NVML_DEVICE(device);
	if (!pci)
		return NVML_INVALID_ARGUMENT;
	unsigned bus = (unsigned)nc_device_pci_bus(index);
	*pci = (nvml_pci){.bus = bus};
	snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "0000:%02X:00.0", bus & 0xff);
	snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", bus & 0xff);
	return NVML_OK;
}

NVML_API nvmlDeviceGetUtilizationRates(nvml_device device, nvml_utilization *utilization)
{
	NVML_DEVICE(device);
	if (!utilization)
		return NVML_INVALID_ARGUMENT;
	*utilization = (nvml_utilization){0, 0};
	return NVML_OK;
}
