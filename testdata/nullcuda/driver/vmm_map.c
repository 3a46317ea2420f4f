// Address reservations and the mappings in them.
#include "vmm.h"
#include "multicast.h"

#include <stdlib.h>
#include <sys/mman.h>

struct reservation {
	struct reservation *next;
	cu_ptr base;
	size_t size;
};

static struct reservation *reservations;

static bool is_granular(uint64_t n) { return n % NC_VMM_GRANULARITY == 0; }

static struct reservation *reservation_around(cu_ptr address, size_t size)
{
	for (struct reservation *r = reservations; r; r = r->next)
		if (address >= r->base && address - r->base < r->size && size <= r->size - (address - r->base))
			return r;
	return NULL;
}

// Turns addresses into reserved ones: nothing there, nothing else can come there.
static bool reserve_at(cu_ptr address, size_t size)
{
	return mmap((void *)address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) !=
	       MAP_FAILED;
}

// Reserves `size` bytes aligned to `align`, at the hint if that is free.
static cu_ptr reserve(size_t size, size_t align, cu_ptr hint)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	if (hint && hint % align == 0) {
		void *there = mmap((void *)hint, size, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
		if ((cu_ptr)(uintptr_t)there == hint)
			return hint;
		if (there != MAP_FAILED)
			munmap(there, size);
	}
	void *pages = mmap(NULL, size + align, PROT_NONE, flags, -1, 0);
	if (pages == MAP_FAILED)
		return 0;
	cu_ptr start = (uintptr_t)pages, base = nc_round_up(start, align);
	if (base > start)
		munmap(pages, base - start);
	munmap((void *)(base + size), start + align - base);
	return base;
}

CU_API cuMemAddressReserve(cu_ptr *address, size_t size, size_t align, cu_ptr hint, unsigned long long flags)
{
	NC_TRY(nc_init_check());
	if (!address || !size || !is_granular(size) || align & (align - 1) || align > NC_SIZE_MAX || flags)
		return CU_INVALID_VALUE;
	if (size > NC_SIZE_MAX)
		return CU_OUT_OF_MEMORY;
	struct reservation *r = malloc(sizeof *r);
	if (!r)
		return CU_OUT_OF_MEMORY;
	NC_LOCKED();
	cu_ptr base = reserve(size, align > NC_VMM_GRANULARITY ? align : NC_VMM_GRANULARITY, hint);
	if (!base) {
		free(r);
		return CU_OUT_OF_MEMORY;
	}
	*r = (struct reservation){reservations, base, size};
	reservations = r;
	*address = base;
	return CU_OK;
}

CU_API cuMemAddressFree(cu_ptr address, size_t size)
{
	NC_ENTER();
	for (struct reservation **link = &reservations, *r; (r = *link); link = &r->next) {
		if (r->base != address || r->size != size)
			continue;
		struct nc_range *inside = nc_range_after(address);
		if (inside && inside->base < address + size)
			return CU_INVALID_VALUE;
		munmap((void *)address, size);
		*link = r->next;
		free(r);
		return CU_OK;
	}
	return CU_INVALID_VALUE;
}

// Places the handle's pages at the address, without access. The kernel makes a
// second mapping of shared anonymous pages when asked to move zero bytes of it.
static bool map_pages(cu_ptr address, size_t size, struct nc_vmm_handle *handle, size_t offset)
{
	void *there = (void *)address, *mapped;
	if (handle->fd >= 0)
		mapped = mmap(there, size, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, handle->fd, (off_t)offset);
	else
		mapped = mremap(handle->home + offset, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, there);
	if (mapped == MAP_FAILED) {
		reserve_at(address, size); // MAP_FIXED may have removed the reservation
		return false;
	}
	return mprotect(there, size, PROT_NONE) == 0;
}

CU_API cuMemMap(cu_ptr address, size_t size, size_t offset, uint64_t value, unsigned long long flags)
{
	NC_TRY(nc_init_check());
	if (!size || flags || !is_granular(address) || !is_granular(size) || !is_granular(offset))
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_vmm_handle *handle = nc_object_find((void *)value, NC_VMM_HANDLE);
	if (!handle || offset > handle->size || size > handle->size - offset || !reservation_around(address, size))
		return CU_INVALID_VALUE;
	if (handle->multicast)
		NC_TRY(nc_multicast_complete(handle->multicast));
	struct nc_range *after = nc_range_after(address);
	if (after && after->base < address + size)
		return CU_INVALID_VALUE;
	struct nc_range *range = calloc(1, sizeof *range);
	if (!range || !map_pages(address, size, handle, offset)) {
		free(range);
		return CU_OUT_OF_MEMORY;
	}
	*range = (struct nc_range){
		.base = address, .requested = size, .size = size, .kind = NC_VMM, .device = handle->device,
		.shared = true, .handle = handle, .handle_offset = offset,
	};
	// Mappings belong to the process: no context's end unmaps them.
	nc_vmm_mapped(handle);
	nc_range_insert(range);
	return CU_OK;
}

// True when [address, address + size) is one or more whole mappings in a row.
static bool whole_mappings(cu_ptr address, size_t size)
{
	cu_ptr end = address + size;
	while (address < end) {
		struct nc_range *range = nc_range_based(address);
		if (!range || range->kind != NC_VMM || range->size > end - address)
			return false;
		address += range->size;
	}
	return true;
}

CU_API cuMemUnmap(cu_ptr address, size_t size)
{
	NC_TRY(nc_init_check());
	if (!size || size > NC_SIZE_MAX || !is_granular(size))
		return CU_INVALID_VALUE;
	NC_LOCKED();
	if (!whole_mappings(address, size))
		return CU_INVALID_VALUE;
	if (!reserve_at(address, size))
		return CU_OUT_OF_MEMORY;
	for (cu_ptr end = address + size; address < end;) {
		struct nc_range *range = nc_range_based(address);
		address += range->size;
		nc_range_remove(range);
		nc_vmm_unmapped(range->handle);
		free(range);
	}
	return CU_OK;
}

static cu_result check_access(const cu_access_desc *access, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int flags = access[i].flags, type = access[i].location.type;
		if (flags != CU_ACCESS_NONE && flags != CU_ACCESS_READ && flags != CU_ACCESS_READ_WRITE)
			return CU_INVALID_VALUE;
		if (type >= CU_LOCATION_HOST && type <= CU_LOCATION_HOST_NUMA_CURRENT)
			continue;
		if (type != CU_LOCATION_DEVICE)
			return CU_INVALID_VALUE;
		if (!nc_device_valid(access[i].location.id))
			return CU_INVALID_DEVICE;
	}
	return CU_OK;
}

// The host plays the device, so it gets what the most privileged device has.
static int protection_of(const struct nc_range *range)
{
	int flags = 0;
	for (int device = 0; device < NC_MAX_DEVICES; device++)
		flags |= range->access[device];
	return (flags & CU_ACCESS_READ ? PROT_READ : 0) | (flags == CU_ACCESS_READ_WRITE ? PROT_WRITE : 0);
}

CU_API cuMemSetAccess(cu_ptr address, size_t size, const cu_access_desc *access, size_t count)
{
	NC_TRY(nc_init_check());
	if (!access || !count || !size || size > NC_SIZE_MAX)
		return CU_INVALID_VALUE;
	NC_TRY(check_access(access, count));
	NC_LOCKED();
	if (!whole_mappings(address, size))
		return CU_INVALID_VALUE;
	for (cu_ptr end = address + size; address < end;) {
		struct nc_range *range = nc_range_based(address);
		for (size_t i = 0; i < count; i++) {
			// Access from the host is access to pages that the host device lends.
			int device = access[i].location.type == CU_LOCATION_DEVICE ? access[i].location.id : range->device;
			range->access[device] = (unsigned char)access[i].flags;
		}
		if (mprotect((void *)range->base, range->size, protection_of(range)) < 0)
			return CU_OUT_OF_MEMORY;
		address += range->size;
	}
	return CU_OK;
}

CU_API cuMemGetAccess(unsigned long long *flags, const cu_location *location, cu_ptr address)
{
	NC_TRY(nc_init_check());
	if (!flags || !location || location->type != CU_LOCATION_DEVICE)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(location->id))
		return CU_INVALID_DEVICE;
	NC_LOCKED();
	struct nc_range *range = nc_range_at(address);
	if (!range || range->kind != NC_VMM)
		return CU_INVALID_VALUE;
	*flags = range->access[location->id];
	return CU_OK;
}
