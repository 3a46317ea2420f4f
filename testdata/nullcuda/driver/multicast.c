// A multicast object takes no device memory: it joins memory that was made by
// cuMemCreate. It maps and is released as any handle. What is read or written through
// such a mapping reaches pages of its own, because only kernels use multicast
// addresses and kernels do nothing here.
#include "multicast.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMFD_NAME "nullcuda-multicast-"
enum { PAGE = 4096 };

// What all processes that share an object must agree on; in the page after its memory.
struct team {
	unsigned devices;
	_Atomic unsigned added; // bit per device
};

struct binding {
	struct binding *next;
	int device;
	size_t at, bytes;
	struct nc_vmm_handle *memory;
};

struct nc_multicast {
	struct team *team;
	struct binding *bindings; // of this process
};

static bool is_granular(uint64_t n) { return n % NC_VMM_GRANULARITY == 0; }

static cu_result check_prop(const cu_multicast_prop *prop)
{
	if (!prop || !prop->devices || prop->devices > (unsigned)nc_config()->devices || !prop->size || prop->flags ||
	    prop->handle_types & ~(unsigned long long)CU_HANDLE_FD)
		return CU_INVALID_VALUE;
	return CU_OK;
}

CU_API cuMulticastGetGranularity(size_t *granularity, const cu_multicast_prop *prop, int option)
{
	NC_TRY(nc_init_check());
	if (!granularity || option < 0 || option > 1)
		return CU_INVALID_VALUE;
	NC_TRY(check_prop(prop));
	*granularity = NC_VMM_GRANULARITY;
	return CU_OK;
}

// A handle around the memfd, which holds the team in its last page. The memfd is the
// handle's on success.
static cu_result handle_for(int fd, size_t size, int handle_types, enum nc_kind kind, struct nc_vmm_handle **out)
{
	const cu_allocation_prop prop = {
		.type = CU_ALLOCATION_PINNED, .handle_types = handle_types, .location = {CU_LOCATION_DEVICE, 0}};
	struct nc_multicast *multicast = calloc(1, sizeof *multicast);
	void *team = multicast ? mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)size) : MAP_FAILED;
	struct nc_vmm_handle *handle = team != MAP_FAILED ? nc_vmm_handle_new(&prop, 0, kind, size, fd) : NULL;
	if (!handle) {
		if (team != MAP_FAILED)
			munmap(team, PAGE);
		free(multicast);
		return CU_OUT_OF_MEMORY;
	}
	multicast->team = team;
	handle->multicast = multicast;
	nc_ledger_alloc(0, kind, (uintptr_t)handle, size, 0);
	*out = handle;
	return CU_OK;
}

CU_API cuMulticastCreate(uint64_t *out, const cu_multicast_prop *prop)
{
	struct nc_vmm_handle *handle;
	NC_TRY(nc_init_check());
	if (!out)
		return CU_INVALID_VALUE;
	NC_TRY(check_prop(prop));
	if (!is_granular(prop->size))
		return CU_INVALID_VALUE;
	if (prop->size > NC_SIZE_MAX)
		return CU_OUT_OF_MEMORY;
	NC_LOCKED();
	int fd = nc_vmm_memfd(MEMFD_NAME "0", prop->size + PAGE);
	if (fd < 0)
		return CU_OUT_OF_MEMORY;
	cu_result result = handle_for(fd, prop->size, (int)prop->handle_types, NC_MULTICAST, &handle);
	if (result != CU_OK) {
		close(fd);
		return result;
	}
	handle->multicast->team->devices = prop->devices;
	*out = (uintptr_t)handle;
	return CU_OK;
}

bool nc_multicast_is(int fd) { return nc_vmm_memfd_number(fd, MEMFD_NAME) >= 0; }

cu_result nc_multicast_import(uint64_t *out, int fd)
{
	struct stat st;
	struct nc_vmm_handle *handle;
	if (fstat(fd, &st) < 0 || st.st_size <= PAGE || !is_granular((uint64_t)st.st_size - PAGE))
		return CU_INVALID_VALUE;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return CU_OUT_OF_MEMORY;
	NC_LOCKED();
	cu_result result = handle_for(own, (size_t)st.st_size - PAGE, CU_HANDLE_FD, NC_IPC, &handle);
	if (result != CU_OK)
		close(own);
	else
		*out = (uintptr_t)handle;
	return result;
}

void nc_multicast_free(struct nc_multicast *multicast)
{
	for (struct binding *binding = multicast->bindings, *next; binding; binding = next) {
		next = binding->next;
		nc_vmm_unmapped(binding->memory);
		free(binding);
	}
	munmap(multicast->team, PAGE);
	free(multicast);
}

cu_result nc_multicast_complete(const struct nc_multicast *multicast)
{
	unsigned added = (unsigned)__builtin_popcount(atomic_load(&multicast->team->added));
	return added == multicast->team->devices ? CU_OK : CU_ILLEGAL_STATE;
}

static cu_result find_object(uint64_t value, struct nc_vmm_handle **handle)
{
	*handle = nc_object_find((void *)value, NC_VMM_HANDLE);
	return *handle && (*handle)->multicast ? CU_OK : CU_INVALID_VALUE;
}

CU_API cuMulticastAddDevice(uint64_t value, cu_device device)
{
	struct nc_vmm_handle *handle;
	NC_TRY(nc_init_check());
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	NC_LOCKED();
	NC_TRY(find_object(value, &handle));
	if (nc_multicast_complete(handle->multicast) == CU_OK)
		return CU_INVALID_VALUE;
	unsigned bit = 1u << device;
	return atomic_fetch_or(&handle->multicast->team->added, bit) & bit ? CU_INVALID_VALUE : CU_OK;
}

// Binds [offset, offset + bytes) of the memory at `at`. Bound memory lives on, as
// mapped memory does. nc_lock held.
static cu_result bind(
	struct nc_vmm_handle *handle, int device, size_t at, struct nc_vmm_handle *memory, size_t offset, size_t bytes)
{
	if (!bytes || !is_granular(at) || !is_granular(offset) || !is_granular(bytes) || at > handle->size ||
	    bytes > handle->size - at || offset > memory->size || bytes > memory->size - offset)
		return CU_INVALID_VALUE;
	if (memory->multicast || memory->kind == NC_HOST || memory->device != device)
		return CU_INVALID_VALUE;
	if (handle->prop.handle_types && !memory->prop.handle_types)
		return CU_INVALID_VALUE; // shared objects join shareable memory only
	NC_TRY(nc_multicast_complete(handle->multicast));
	if (!(atomic_load(&handle->multicast->team->added) & 1u << device))
		return CU_INVALID_DEVICE;
	for (struct binding *other = handle->multicast->bindings; other; other = other->next)
		if (other->device == device && at < other->at + other->bytes && other->at < at + bytes)
			return CU_INVALID_VALUE;
	struct binding *binding = malloc(sizeof *binding);
	if (!binding)
		return CU_OUT_OF_MEMORY;
	*binding = (struct binding){handle->multicast->bindings, device, at, bytes, memory};
	handle->multicast->bindings = binding;
	nc_vmm_mapped(memory);
	return CU_OK;
}

// `device` < 0 stands for the device of the memory.
static cu_result bind_memory(uint64_t value, cu_device device, size_t at, uint64_t memory_value, size_t offset,
	size_t bytes, unsigned long long flags)
{
	struct nc_vmm_handle *handle;
	NC_ENTER();
	NC_TRY(find_object(value, &handle));
	struct nc_vmm_handle *memory = nc_object_find((void *)memory_value, NC_VMM_HANDLE);
	if (!memory || flags)
		return CU_INVALID_VALUE;
	return bind(handle, device < 0 ? memory->device : device, at, memory, offset, bytes);
}

static cu_result bind_address(
	uint64_t value, cu_device device, size_t at, cu_ptr address, size_t bytes, unsigned long long flags)
{
	struct nc_vmm_handle *handle;
	NC_ENTER();
	NC_TRY(find_object(value, &handle));
	struct nc_range *range = nc_range_at(address);
	if (!range || range->kind != NC_VMM || bytes > range->base + range->size - address || flags)
		return CU_INVALID_VALUE;
	struct nc_vmm_handle *memory = range->handle;
	return bind(handle, device < 0 ? memory->device : device, at, memory,
		range->handle_offset + (address - range->base), bytes);
}

CU_API cuMulticastBindMem(
	uint64_t handle, size_t at, uint64_t memory, size_t offset, size_t bytes, unsigned long long flags)
{
	return bind_memory(handle, -1, at, memory, offset, bytes, flags);
}

CU_API cuMulticastBindMem_v2(uint64_t handle, cu_device device, size_t at, uint64_t memory, size_t offset, size_t bytes,
                             unsigned long long flags)
{
	NC_TRY(nc_init_check());
	return nc_device_valid(device) ? bind_memory(handle, device, at, memory, offset, bytes, flags) : CU_INVALID_DEVICE;
}

CU_API cuMulticastBindAddr(uint64_t handle, size_t at, cu_ptr address, size_t bytes, unsigned long long flags)
{
	return bind_address(handle, -1, at, address, bytes, flags);
}

CU_API cuMulticastBindAddr_v2(
	uint64_t handle, cu_device device, size_t at, cu_ptr address, size_t bytes, unsigned long long flags)
{
	NC_TRY(nc_init_check());
	return nc_device_valid(device) ? bind_address(handle, device, at, address, bytes, flags) : CU_INVALID_DEVICE;
}

CU_API cuMulticastUnbind(uint64_t value, cu_device device, size_t at, size_t bytes)
{
	struct nc_vmm_handle *handle;
	NC_TRY(nc_init_check());
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	NC_LOCKED();
	NC_TRY(find_object(value, &handle));
	for (struct binding **link = &handle->multicast->bindings, *binding; (binding = *link); link = &binding->next) {
		if (binding->device != device || binding->at != at || binding->bytes != bytes)
			continue;
		*link = binding->next;
		nc_vmm_unmapped(binding->memory);
		free(binding);
		return CU_OK;
	}
	return CU_INVALID_VALUE;
}
