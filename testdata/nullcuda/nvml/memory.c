// Memory and processes, out of the accounting file.
#include "nvml.h"

// `used` is what processes hold, beside what the device keeps for itself.
static void read_memory(int index, unsigned long long *total, unsigned long long *reserved, unsigned long long *used)
{
	struct nc_account *account = nvml_account();
	nc_account_lock(account);
	nc_account_reap(account);
	*used = nc_account_used(account, index);
	nc_account_unlock(account);
	*total = nc_config()->device_bytes;
	*reserved = nc_config()->reserved_bytes;
	// Processes may have been started with a larger NULLCUDA_MEM than this one.
	if (*used + *reserved > *total)
		*total = *used + *reserved;
}

// The first version counts what is reserved as used.
NVML_API nvmlDeviceGetMemoryInfo(nvml_device device, nvml_memory *memory)
{
	unsigned long long reserved;
	NVML_DEVICE(device);
	if (!memory)
		return NVML_INVALID_ARGUMENT;
	read_memory(index, &memory->total, &reserved, &memory->used);
	memory->used += reserved;
	memory->free = memory->total - memory->used;
	return NVML_OK;
}

NVML_API nvmlDeviceGetMemoryInfo_v2(nvml_device device, nvml_memory_v2 *memory)
{
	NVML_DEVICE(device);
	if (!memory)
		return NVML_INVALID_ARGUMENT;
	if (memory->version != NVML_MEMORY_VERSION_2)
		return NVML_ARGUMENT_VERSION_MISMATCH;
	read_memory(index, &memory->total, &memory->reserved, &memory->used);
	memory->free = memory->total - memory->reserved - memory->used;
	return NVML_OK;
}

// What NULLCUDA_NVML makes of an entry. No pid on Linux is as large as the shift.
static struct nc_account_process seen(struct nc_account_process process)
{
	enum { PID_SHIFT = 1 << 22 };
	if (nc_config()->nvml == NC_NVML_NO_PROCESSES)
		process.used = ~0ull;
	if (nc_config()->nvml == NC_NVML_FOREIGN_PIDS)
		process.pid += PID_SHIFT;
	return process;
}

// Fills the list and its count, or says how many entries it needs. Under MIG only the
// instance knows its processes.
static int list_processes(nvml_device device, unsigned *count, struct nc_account_process *list, unsigned room)
{
	struct nc_account *account = nvml_account();
	NVML_DEVICE(device);
	if (nc_config()->nvml == NC_NVML_MIG && !nvml_is_mig(device))
		return NVML_NO_PERMISSION;
	nc_account_lock(account);
	unsigned found = nc_account_processes(account, index, list, room);
	nc_account_unlock(account);
	for (unsigned i = 0; i < found && i < room; i++)
		list[i] = seen(list[i]);
	*count = found;
	return found > room ? NVML_INSUFFICIENT_SIZE : NVML_OK;
}

static unsigned usable_room(const unsigned *count, const void *infos)
{
	if (!infos)
		return 0;
	return *count < NC_ACCOUNT_SLOTS ? *count : NC_ACCOUNT_SLOTS;
}

NVML_API nvmlDeviceGetComputeRunningProcesses(nvml_device device, unsigned *count, nvml_process_v1 *infos)
{
	struct nc_account_process list[NC_ACCOUNT_SLOTS];
	if (!count)
		return NVML_INVALID_ARGUMENT;
	NVML_TRY(list_processes(device, count, list, usable_room(count, infos)));
	for (unsigned i = 0; i < *count; i++)
		infos[i] = (nvml_process_v1){(unsigned)list[i].pid, list[i].used};
	return NVML_OK;
}

NVML_API nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *count, nvml_process_v2 *infos)
{
	const unsigned none = 0xffffffff;
	bool mig = nvml_is_mig(device);
	struct nc_account_process list[NC_ACCOUNT_SLOTS];
	if (!count)
		return NVML_INVALID_ARGUMENT;
	NVML_TRY(list_processes(device, count, list, usable_room(count, infos)));
	for (unsigned i = 0; i < *count; i++)
		infos[i] = (nvml_process_v2){(unsigned)list[i].pid, list[i].used, mig ? NVML_GPU_INSTANCE : none,
		                              mig ? NVML_COMPUTE_INSTANCE : none};
	return NVML_OK;
}

NVML_API nvmlDeviceGetComputeRunningProcesses_v2(nvml_device device, unsigned *count, nvml_process_v2 *infos)
{
	return nvmlDeviceGetComputeRunningProcesses_v3(device, count, infos);
}

// Lists that are always empty: nobody draws on a null GPU, nobody shares it by MPS,
// and nothing keeps it busy.
#define EMPTY_LIST(name)                                                    \
	NVML_API name(nvml_device device, unsigned *count, void *infos)     \
	{                                                                   \
		(void)infos;                                                \
		NVML_DEVICE(device);                                        \
		if (!count)                                                 \
			return NVML_INVALID_ARGUMENT;                       \
		*count = 0;                                                 \
		return NVML_OK;                                             \
	}
EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses)
EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2)
EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3)
EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses)
EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2)
EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3)

// With no samples the real library says that there are none rather than giving an
// empty list.
NVML_API nvmlDeviceGetProcessUtilization(nvml_device device, void *samples, unsigned *count, unsigned long long since)
{
	(void)samples, (void)since;
	NVML_DEVICE(device);
	if (!count)
		return NVML_INVALID_ARGUMENT;
	*count = 0;
	return NVML_NOT_FOUND;
}
