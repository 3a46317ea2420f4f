// What the environment says about the null GPUs of this process. The driver and
// NVML libraries each read it once and must come to the same answer.
#ifndef NULLCUDA_CONFIG_H
#define NULLCUDA_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NC_MAX_DEVICES = 8 };

// How NVML sees processes.
enum nc_nvml_mode {
	NC_NVML_PLAIN,
	NC_NVML_NO_PROCESSES, // lists them without their bytes, as under WSL
	NC_NVML_FOREIGN_PIDS, // gives pids of another namespace, as in a container
	NC_NVML_MIG,          // the device is one MIG instance
};

struct nc_config {
	int devices;            // NULLCUDA_DEVICES, 1..8
	uint64_t device_bytes;  // NULLCUDA_MEM, of each device
	uint64_t context_bytes; // NULLCUDA_CONTEXT, charged per live context
	uint64_t reserved_bytes; // NULLCUDA_RESERVED: of each device, never free
	uint64_t page_bytes;     // NULLCUDA_PAGES: 2M, or 0 for units of 512 bytes
	enum nc_nvml_mode nvml;  // NULLCUDA_NVML
	int driver_version;     // NULLCUDA_DRIVER_VERSION, 1000*major + 10*minor
	const char *shared;     // NULLCUDA_SHARED: a path, "none", or NULL for the default
	const char *log;        // NULLCUDA_LOG: a path with %p for the pid, or NULL
};

// Reads the environment on the first call and never again. A value that makes
// no sense is reported once on stderr and replaced by its default.
const struct nc_config *nc_config(void);

// A stable UUID for a device index, equal in every process; of its MIG instance if
// asked for.
void nc_device_uuid(int device, bool mig, unsigned char uuid[16]);

// "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" or "MIG-...", 41 bytes with the final zero.
void nc_device_uuid_text(int device, bool mig, char text[41]);

// Each null GPU sits on a PCI bus of its own: domain 0, device 0, function 0.
static inline int nc_device_pci_bus(int device) { return 0x10 + device; }

#endif
