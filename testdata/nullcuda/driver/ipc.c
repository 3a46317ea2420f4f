// The first export of an allocation moves its pages into a memfd, mapped at the
// same address; another process of the user opens that through /proc. Nothing
// needs a server, and memory that is never exported needs no descriptor.
//
// A write by another thread while the pages move may be lost: the program must
// not run kernels or copies on memory that it is exporting for the first time.
#include "ipc.h"
#include "context.h"
#include "memory.h"
#include "page.h"
#include "../shared/memfd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };

struct ticket {
	char magic[16];
	int32_t pid, fd;
	int32_t device, unused;
	uint64_t inode, requested, mapped;
	uint64_t offset; // of the memory in what is mapped: small blocks share a page
};
_Static_assert(sizeof(struct ticket) <= sizeof(cu_ipc_handle), "a ticket must fit a handle");
static const char ticket_magic[16] = "nullcuda memory";

// Copies only pages that hold something, so that lazily backed memory stays so.
static void copy_touched(char *to, const char *from, size_t bytes)
{
	static const char zeros[PAGE];
	for (size_t at = 0; at < bytes; at += PAGE)
		if (memcmp(from + at, zeros, PAGE))
			memcpy(to + at, from + at, PAGE);
}

static cu_result export(cu_ptr base, size_t bytes, struct nc_ipc **out)
{
	struct stat st;
	struct nc_ipc *ipc = malloc(sizeof *ipc);
	int fd = nc_memfd("nullcuda-ipc");
	void *copy = MAP_FAILED;
	if (ipc && fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 && fstat(fd, &st) == 0)
		copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (copy != MAP_FAILED) {
		copy_touched(copy, (char *)base, bytes);
		munmap(copy, bytes);
		copy = mmap((void *)base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	}
	if (copy == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		free(ipc);
		return CU_OUT_OF_MEMORY;
	}
	*ipc = (struct nc_ipc){fd, st.st_ino};
	*out = ipc;
	return CU_OK;
}

void nc_ipc_forget(struct nc_ipc *ipc)
{
	if (ipc->fd >= 0)
		close(ipc->fd);
	free(ipc);
}

CU_API cuIpcGetMemHandle(cu_ipc_handle *handle, cu_ptr address)
{
	NC_CURRENT(context);
	if (!handle)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_range *range = nc_range_at(address);
	if (!range || range->kind != NC_DEVICE)
		return CU_INVALID_VALUE;
	cu_ptr base = range->page ? range->page->base : range->base;
	size_t bytes = range->page ? nc_config()->page_bytes : range->mapped;
	struct nc_ipc **ipc = range->page ? &range->page->ipc : &range->ipc;
	if (!*ipc)
		NC_TRY(export(base, bytes, ipc));
	range->shared = true;
	struct ticket ticket = {
		.pid = getpid(), .fd = (*ipc)->fd, .device = range->device, .inode = (*ipc)->inode,
		.requested = range->requested, .mapped = bytes, .offset = range->base - base,
	};
	memcpy(ticket.magic, ticket_magic, sizeof ticket.magic);
	*handle = (cu_ipc_handle){0};
	memcpy(handle->data, &ticket, sizeof ticket);
	return CU_OK;
}

// The range of an earlier open of the same memory, NULL when this is the first.
static struct nc_range *opened_before(uint64_t inode, uint64_t offset)
{
	cu_ptr address = 0;
	for (struct nc_range *range; (range = nc_range_after(address)); address = range->base + range->size)
		if (range->kind == NC_IPC && range->ipc && range->ipc->inode == inode && range->base - range->pages == offset)
			return range;
	return NULL;
}

// Maps the exporter's memfd. CU_MAP_FAILED when the exporter ended or freed it.
static cu_result map_ticket(const struct ticket *ticket, void **pages)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", ticket->pid, ticket->fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	*pages = MAP_FAILED;
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == ticket->inode && st.st_size == (off_t)ticket->mapped)
		*pages = mmap(NULL, ticket->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	return *pages == MAP_FAILED ? CU_MAP_FAILED : CU_OK;
}

CU_API cuIpcOpenMemHandle_v2(cu_ptr *address, cu_ipc_handle handle, unsigned flags)
{
	NC_CURRENT(context);
	struct ticket ticket;
	(void)flags;
	if (!address)
		return CU_INVALID_VALUE;
	memcpy(&ticket, handle.data, sizeof ticket);
	if (memcmp(ticket.magic, ticket_magic, sizeof ticket.magic) || !ticket.mapped || ticket.mapped > NC_SIZE_MAX ||
		ticket.offset > ticket.mapped || ticket.requested > ticket.mapped - ticket.offset ||
		!nc_device_valid(ticket.device))
		return CU_INVALID_HANDLE;
	// As with a real device, a process cannot open its own memory.
	if (ticket.pid == getpid())
		return CU_INVALID_CONTEXT;
	NC_LOCKED();
	struct nc_range *range = opened_before(ticket.inode, ticket.offset);
	if (!range) {
		void *pages;
		struct nc_ipc *ipc = malloc(sizeof *ipc);
		range = calloc(1, sizeof *range);
		cu_result result = ipc && range ? map_ticket(&ticket, &pages) : CU_OUT_OF_MEMORY;
		if (result != CU_OK) {
			free(ipc);
			free(range);
			return result;
		}
		*ipc = (struct nc_ipc){-1, ticket.inode};
		*range = (struct nc_range){
			.base = (uintptr_t)pages + ticket.offset, .requested = ticket.requested,
			.size = ticket.mapped - ticket.offset, .pages = (uintptr_t)pages, .mapped = ticket.mapped, .kind = NC_IPC,
			.device = ticket.device, .owner = context, .shared = true, .ipc = ipc,
		};
		nc_range_insert(range);
		nc_ledger_alloc(range->device, NC_IPC, range->base, range->requested, 0);
	}
	range->open_count++;
	*address = range->base;
	return CU_OK;
}

CU_API cuIpcOpenMemHandle(cu_ptr *address, cu_ipc_handle handle, unsigned flags)
{
	return cuIpcOpenMemHandle_v2(address, handle, flags);
}

CU_API cuIpcCloseMemHandle(cu_ptr address)
{
	NC_CURRENT(context);
	NC_LOCKED();
	struct nc_range *range = nc_range_based(address);
	if (!range || range->kind != NC_IPC || !range->ipc)
		return CU_INVALID_VALUE;
	if (--range->open_count == 0)
		nc_memory_release(range);
	return CU_OK;
}
