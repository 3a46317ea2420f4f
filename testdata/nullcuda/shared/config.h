// What the environment says about the null GPUs of this process. The driver and
// NVML libraries each read it once and must come to the same answer.
#ifndef NULLCUDA_CONFIG_H
#define NULLCUDA_CONFIG_H

#include <stddef.h>
#include <stdint.h>

enum { NC_MAX_DEVICES = 8 };

struct nc_config {
	int devices;            // NULLCUDA_DEVICES, 1..8
	uint64_t device_bytes;  // NULLCUDA_MEM, of each device
	uint64_t context_bytes; // NULLCUDA_CONTEXT, charged per live context
	int driver_version;     // NULLCUDA_DRIVER_VERSION, 1000*major + 10*minor
	const char *shared;     // NULLCUDA_SHARED: a path, "none", or NULL for the default
	const char *log;        // NULLCUDA_LOG: a path with %p for the pid, or NULL
};

// Reads the environment on the first call and never again. A value that makes
// no sense is reported once on stderr and replaced by its default.
const struct nc_config *nc_config(void);

// A stable UUID for a device index, equal in every process.
void nc_device_uuid(int device, unsigned char uuid[16]);

// "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", 41 bytes with the final zero.
void nc_device_uuid_text(int device, char text[41]);

// Each null GPU sits on a PCI bus of its own: domain 0, device 0, function 0.
static inline int nc_device_pci_bus(int device) { return 0x10 + device; }

#endif
