// The null NVML: our own declarations of the parts of its ABI that we speak, and
// what its files share.
#ifndef NULLCUDA_NVML_H
#define NULLCUDA_NVML_H

#include "../shared/account.h"

#include <stdbool.h>

#define NVML_API __attribute__((visibility("default"))) int

enum {
	NVML_OK = 0,
	NVML_UNINITIALIZED = 1,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_ARGUMENT_VERSION_MISMATCH = 25,
};

typedef struct nvml_device *nvml_device;

enum { NVML_GPU_INSTANCE = 1, NVML_COMPUTE_INSTANCE = 0 };

typedef struct {
	char bus_id_legacy[16];
	unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
	char bus_id[32];
} nvml_pci;

typedef struct { unsigned long long total, free, used; } nvml_memory;
typedef struct {
	unsigned version;
	unsigned long long total, reserved, free, used;
} nvml_memory_v2;
// The version word of a struct: its size, and its number in the high byte.
#define NVML_MEMORY_VERSION_2 ((unsigned)sizeof(nvml_memory_v2) | 2u << 24)

typedef struct { unsigned pid; unsigned long long used; } nvml_process_v1;
typedef struct {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
} nvml_process_v2; // and v3

typedef struct { unsigned gpu, memory; } nvml_utilization;

// The account of the running session; its lock is taken around each use.
struct nc_account *nvml_account(void);

// NVML_OK between init and shutdown.
int nvml_check(void);

// The same, and the handle is one that we gave out.
int nvml_check_device(nvml_device device, int *index);

// Whether the handle is that of a MIG instance; there is one on each device, and only
// where NULLCUDA_NVML says so.
bool nvml_is_mig(nvml_device device);

// Copies a text with its final zero, or NVML_INSUFFICIENT_SIZE.
int nvml_copy_text(char *out, unsigned length, const char *text);

#define NVML_TRY(expression)                   \
	do {                                   \
		int try_ = (expression);       \
		if (try_ != NVML_OK)           \
			return try_;           \
	} while (0)

#define NVML_DEVICE(handle) \
	int index;          \
	NVML_TRY(nvml_check_device(handle, &index))

#endif
