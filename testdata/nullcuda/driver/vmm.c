#include "vmm.h"
#include "fabric.h"
#include "multicast.h"
#include "../shared/memfd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMFD_NAME "nullcuda-vmm-"

static uint64_t last_handle_id;

static bool is_granular(uint64_t n) { return n % NC_VMM_GRANULARITY == 0; }

// Which device pays for memory at the location. Host memory is free of charge.
static cu_result place(const cu_allocation_prop *prop, int *device, enum nc_kind *kind)
{
	if (!prop || prop->type != CU_ALLOCATION_PINNED || prop->handle_types & ~(CU_HANDLE_FD | CU_HANDLE_FABRIC))
		return CU_INVALID_VALUE;
	*device = 0;
	*kind = NC_HOST;
	if (prop->location.type >= CU_LOCATION_HOST && prop->location.type <= CU_LOCATION_HOST_NUMA_CURRENT)
		return CU_OK;
	if (prop->location.type != CU_LOCATION_DEVICE)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(prop->location.id))
		return CU_INVALID_DEVICE;
	*device = prop->location.id;
	*kind = NC_VMM;
	return CU_OK;
}

// Maps the pages of a handle: from its memfd, or as new anonymous memory.
static char *map_home(int fd, size_t size)
{
	int flags = MAP_SHARED | MAP_NORESERVE | (fd < 0 ? MAP_ANONYMOUS : 0);
	void *home = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
	return home == MAP_FAILED ? NULL : home;
}

int nc_vmm_memfd(const char *name, size_t size)
{
	int fd = nc_memfd(name);
	if (fd >= 0 && ftruncate(fd, (off_t)size) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

// One that says which device holds its memory.
static int memfd_for(int device, size_t size)
{
	char name[64];
	snprintf(name, sizeof name, MEMFD_NAME "%d", device);
	return nc_vmm_memfd(name, size);
}

struct nc_vmm_handle *nc_vmm_handle_new(
	const cu_allocation_prop *prop, int device, enum nc_kind kind, size_t size, int fd)
{
	struct nc_vmm_handle *handle = nc_object_new(NC_VMM_HANDLE, sizeof *handle, NULL);
	if (!handle)
		return NULL;
	handle->size = size;
	handle->prop = *prop;
	handle->device = device;
	handle->kind = kind;
	handle->charged = kind == NC_IPC || kind == NC_MULTICAST ? 0 : size;
	handle->references = 1;
	handle->id = ++last_handle_id;
	handle->fd = fd;
	handle->home = map_home(fd, size);
	if (!handle->home) {
		nc_object_delete(handle);
		return NULL;
	}
	return handle;
}

static void handle_free(struct nc_vmm_handle *handle)
{
	if (handle->multicast)
		nc_multicast_free(handle->multicast);
	munmap(handle->home, handle->size);
	if (handle->fd >= 0)
		close(handle->fd);
	free(handle);
}

static void handle_settle(struct nc_vmm_handle *handle)
{
	if (handle->references || handle->mappings)
		return;
	nc_ledger_free(handle->device, handle->kind, (uintptr_t)handle, handle->size, handle->charged);
	handle_free(handle);
}

CU_API cuMemCreate(uint64_t *out, size_t size, const cu_allocation_prop *prop, unsigned long long flags)
{
	int device;
	enum nc_kind kind;
	NC_TRY(nc_init_check());
	if (!out || !size || !is_granular(size) || flags)
		return CU_INVALID_VALUE;
	NC_TRY(place(prop, &device, &kind));
	if (size > NC_SIZE_MAX)
		return CU_OUT_OF_MEMORY;
	NC_LOCKED();
	int fd = -1;
	if (prop->handle_types && (fd = memfd_for(device, size)) < 0)
		return CU_OUT_OF_MEMORY;
	struct nc_vmm_handle *handle = nc_vmm_handle_new(prop, device, kind, size, fd);
	if (!handle) {
		if (fd >= 0)
			close(fd);
		return CU_OUT_OF_MEMORY;
	}
	cu_result result = nc_ledger_alloc(device, kind, (uintptr_t)handle, size, size);
	if (result != CU_OK) {
		nc_object_remove(handle);
		handle_free(handle);
		return result;
	}
	*out = (uintptr_t)handle;
	return CU_OK;
}

CU_API cuMemRelease(uint64_t value)
{
	NC_ENTER();
	struct nc_vmm_handle *handle = nc_object_find((void *)value, NC_VMM_HANDLE);
	if (!handle)
		return CU_INVALID_VALUE;
	if (--handle->references)
		return CU_OK;
	nc_object_remove(handle);
	handle_settle(handle);
	return CU_OK;
}

CU_API cuMemRetainAllocationHandle(uint64_t *out, void *address)
{
	NC_TRY(nc_init_check());
	if (!out)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_range *range = nc_range_at((uintptr_t)address);
	if (!range || range->kind != NC_VMM)
		return CU_INVALID_VALUE;
	struct nc_vmm_handle *handle = range->handle;
	if (handle->references++ == 0)
		nc_object_add(handle);
	*out = (uintptr_t)handle;
	return CU_OK;
}

CU_API cuMemGetAllocationGranularity(size_t *granularity, const cu_allocation_prop *prop, int option)
{
	int device;
	enum nc_kind kind;
	NC_TRY(nc_init_check());
	if (!granularity || option < 0 || option > 1)
		return CU_INVALID_VALUE;
	NC_TRY(place(prop, &device, &kind));
	*granularity = NC_VMM_GRANULARITY;
	return CU_OK;
}

CU_API cuMemGetAllocationPropertiesFromHandle(cu_allocation_prop *prop, uint64_t value)
{
	NC_TRY(nc_init_check());
	if (!prop)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_vmm_handle *handle = nc_object_find((void *)value, NC_VMM_HANDLE);
	if (!handle)
		return CU_INVALID_VALUE;
	*prop = handle->prop;
	return CU_OK;
}

CU_API cuMemExportToShareableHandle(void *out, uint64_t value, int type, unsigned long long flags)
{
	NC_TRY(nc_init_check());
	if (!out || flags || (type != CU_HANDLE_FD && type != CU_HANDLE_FABRIC))
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_vmm_handle *handle = nc_object_find((void *)value, NC_VMM_HANDLE);
	if (!handle || handle->fd < 0 || !(handle->prop.handle_types & type))
		return CU_INVALID_VALUE;
	if (type == CU_HANDLE_FABRIC)
		return nc_fabric_export(handle->fd, out);
	int fd = fcntl(handle->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return CU_OUT_OF_MEMORY;
	*(int *)out = fd;
	return CU_OK;
}

int nc_vmm_memfd_number(int fd, const char *name)
{
	char path[64], found[128], end;
	int number;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(path, found, sizeof found - 1);
	size_t skip = strlen("/memfd:") + strlen(name);
	if (n < 0 || (size_t)n <= skip)
		return -1;
	found[n] = 0;
	if (strncmp(found, "/memfd:", strlen("/memfd:")) || strncmp(found + strlen("/memfd:"), name, strlen(name)) ||
	    sscanf(found + skip, "%d%c", &number, &end) != 2 || end != ' ')
		return -1;
	return number;
}

// The device of the memory behind one of our memfds, -1 for any other descriptor.
static int exported_device(int fd)
{
	int device = nc_vmm_memfd_number(fd, MEMFD_NAME);
	return nc_device_valid(device) ? device : -1;
}

// The descriptor stays the caller's.
static cu_result import(uint64_t *out, int fd)
{
	struct stat st;
	if (nc_multicast_is(fd))
		return nc_multicast_import(out, fd);
	int device = exported_device(fd);
	if (device < 0 || fstat(fd, &st) < 0 || st.st_size <= 0 || !is_granular((uint64_t)st.st_size))
		return CU_INVALID_VALUE;
	const cu_allocation_prop prop = {
		.type = CU_ALLOCATION_PINNED, .handle_types = CU_HANDLE_FD, .location = {CU_LOCATION_DEVICE, device},
	};
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return CU_OUT_OF_MEMORY;
	NC_LOCKED();
	struct nc_vmm_handle *handle = nc_vmm_handle_new(&prop, device, NC_IPC, (size_t)st.st_size, own);
	if (!handle) {
		close(own);
		return CU_OUT_OF_MEMORY;
	}
	nc_ledger_alloc(device, NC_IPC, (uintptr_t)handle, handle->size, handle->charged);
	*out = (uintptr_t)handle;
	return CU_OK;
}

CU_API cuMemImportFromShareableHandle(uint64_t *out, void *os_handle, int type)
{
	int fd;
	NC_TRY(nc_init_check());
	if (!out)
		return CU_INVALID_VALUE;
	if (type == CU_HANDLE_FD)
		return import(out, (int)(intptr_t)os_handle);
	if (type != CU_HANDLE_FABRIC || !os_handle)
		return CU_INVALID_VALUE;
	NC_TRY(nc_fabric_import(os_handle, &fd));
	cu_result result = import(out, fd);
	close(fd);
	return result;
}

void nc_vmm_mapped(struct nc_vmm_handle *handle) { handle->mappings++; }

void nc_vmm_unmapped(struct nc_vmm_handle *handle)
{
	handle->mappings--;
	handle_settle(handle);
}
