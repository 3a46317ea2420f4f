// Another API's memory is a file that can be mapped (a memfd plays Vulkan). It is
// foreign: the log has a line for each mapping, charged 0, and none for the import.
#include "external.h"
#include "array.h"
#include "context.h"
#include "range.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, DEDICATED = 1 };

struct nc_external {
	struct nc_object object;
	int fd;
	uint64_t size;
};

void nc_external_destroy(void *object)
{
	struct nc_external *external = object;
	close(external->fd);
	nc_object_delete(external);
}

// The descriptor belongs to the driver from a success on.
CU_API cuImportExternalMemory(void **handle, const cu_external_memory *desc)
{
	struct stat st;
	NC_CURRENT(context);
	if (!handle || !desc || !desc->size || desc->size > NC_SIZE_MAX || desc->flags & ~(unsigned)DEDICATED)
		return CU_INVALID_VALUE;
	if (desc->type != CU_EXTERNAL_OPAQUE_FD)
		return CU_NOT_SUPPORTED;
	if (fstat(desc->fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size < desc->size)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_external *external = nc_object_new(NC_EXTERNAL, sizeof *external, context);
	if (!external)
		return CU_OUT_OF_MEMORY;
	external->fd = desc->fd;
	external->size = desc->size;
	*handle = external;
	return CU_OK;
}

CU_API cuDestroyExternalMemory(void *handle)
{
	NC_ENTER();
	struct nc_external *external = nc_object_find(handle, NC_EXTERNAL);
	if (!external)
		return CU_INVALID_HANDLE;
	nc_external_destroy(external);
	return CU_OK;
}

// Maps the pages around [offset, offset + bytes) and says where the offset lies.
static cu_result map_part(const struct nc_external *external, uint64_t offset, uint64_t bytes, struct nc_store *out)
{
	if (!bytes || offset > external->size || bytes > external->size - offset)
		return CU_INVALID_VALUE;
	uint64_t first = offset / PAGE * PAGE;
	size_t mapped = nc_round_up(offset + bytes, PAGE) - first;
	char *pages = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, external->fd, (off_t)first);
	if (pages == MAP_FAILED)
		return CU_MAP_FAILED;
	*out = (struct nc_store){NC_IPC, bytes, 0, pages + (offset - first), pages, mapped};
	return CU_OK;
}

CU_API cuExternalMemoryGetMappedBuffer(cu_ptr *address, void *handle, const cu_external_buffer *desc)
{
	struct nc_store part;
	NC_CURRENT(context);
	if (!address || !desc || desc->flags)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_external *external = nc_object_find(handle, NC_EXTERNAL);
	if (!external)
		return CU_INVALID_HANDLE;
	NC_TRY(map_part(external, desc->offset, desc->size, &part));
	struct nc_range *range = calloc(1, sizeof *range);
	if (!range) {
		munmap(part.pages, part.mapped);
		return CU_OUT_OF_MEMORY;
	}
	*range = (struct nc_range){
		.base = (uintptr_t)part.data, .requested = desc->size, .size = desc->size, .pages = (uintptr_t)part.pages,
		.mapped = part.mapped, .kind = NC_IPC, .device = context->device, .owner = context, .shared = true,
		.external = true,
	};
	nc_range_insert(range);
	nc_ledger_alloc(range->device, NC_IPC, range->base, range->requested, 0);
	*address = range->base;
	return CU_OK;
}

CU_API cuExternalMemoryGetMappedMipmappedArray(void **out, void *handle, const cu_external_mipmap *desc)
{
	struct nc_store part;
	struct nc_mipmap *mipmap;
	NC_CURRENT(context);
	if (!out || !desc || !desc->levels || nc_array_is_sparse(&desc->array))
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_external *external = nc_object_find(handle, NC_EXTERNAL);
	if (!external)
		return CU_INVALID_HANDLE;
	NC_TRY(nc_mipmap_new(context, &desc->array, desc->levels, &mipmap));
	cu_result result = map_part(external, desc->offset, mipmap->bytes, &part);
	if (result != CU_OK) {
		nc_mipmap_destroy(mipmap);
		return result;
	}
	nc_mipmap_place(mipmap, &part);
	nc_ledger_alloc(mipmap->device, NC_IPC, (uintptr_t)mipmap, mipmap->bytes, 0);
	*out = mipmap;
	return CU_OK;
}
