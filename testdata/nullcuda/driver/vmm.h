// Virtual memory management: physical memory as handles, addresses as
// reservations, and mappings between them.
//
// A handle's memory is charged when it is created and given back when the
// handle is released and its last mapping is gone, in either order. It lives in
// shared pages so that every mapping of it is the same memory: a memfd when it
// may be exported, else an anonymous home mapping that the kernel duplicates.
#ifndef NULLCUDA_VMM_H
#define NULLCUDA_VMM_H

#include "object.h"
#include "range.h"

#define NC_VMM_GRANULARITY ((size_t)2 << 20)

struct nc_vmm_handle {
	struct nc_object object;
	size_t size;
	cu_allocation_prop prop;
	int device;           // of the charge; 0 for host memory
	enum nc_kind kind;    // NC_VMM, NC_HOST, NC_MULTICAST, or NC_IPC when imported
	size_t charged;       // in the log: 0 for foreign memory and multicast objects
	unsigned references;  // creations, retains and imports not yet released
	unsigned mappings;
	uint64_t id;
	char *home; // the pages, readable and writable
	int fd;     // memfd, or -1
	struct nc_multicast *multicast; // NULL unless the handle is a multicast object
};

// A handle of `size` bytes with pages behind it and one reference. The memfd, if not
// -1, becomes the handle's on success. NULL when out of memory. nc_lock held, as for
// all functions here.
struct nc_vmm_handle *nc_vmm_handle_new(
	const cu_allocation_prop *prop, int device, enum nc_kind kind, size_t size, int fd);

// A named memfd of that size, -1 when there is none to be had.
int nc_vmm_memfd(const char *name, size_t size);

// The number that follows the name of a memfd made by nc_vmm_memfd("NAMEnumber"), -1
// for any other descriptor.
int nc_vmm_memfd_number(int fd, const char *name);

// Tells the handle that one of its mappings, bindings or tiles came or is gone.
void nc_vmm_mapped(struct nc_vmm_handle *handle);
void nc_vmm_unmapped(struct nc_vmm_handle *handle);

#endif
