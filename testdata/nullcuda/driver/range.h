// Every stretch of addresses that a CUDA call handed out or took over, found by
// any address inside it.
#ifndef NULLCUDA_RANGE_H
#define NULLCUDA_RANGE_H

#include "ledger.h"

struct nc_context;
struct nc_pool;
struct nc_vmm_handle;

struct nc_range {
	// Tree links, in address order.
	struct nc_range *left, *right;
	uint64_t priority;

	cu_ptr base;
	size_t requested; // as the program asked
	size_t size;      // usable bytes from base: requested rounded up to the unit
	cu_ptr pages;     // start of the mapping that holds base, 0 when base starts it
	size_t charged;   // in the log, of what nc_memory_release frees
	size_t mapped;    // bytes to munmap, 0 when the pages belong to someone else
	enum nc_kind kind;
	int device;
	struct nc_context *owner; // freed with this context, NULL: with the process
	uint64_t buffer_id;
	unsigned flags;          // of cuMemHostAlloc, cuMemHostRegister, cuMemAllocManaged
	bool registered;         // the program's own memory, from cuMemHostRegister
	bool shared;             // pages are shared between processes or mappings
	unsigned char access[NC_MAX_DEVICES]; // VMM mappings: what each device may do
	int sync_memops;         // CU_POINTER_ATTRIBUTE_SYNC_MEMOPS as set
	unsigned open_count;     // IPC: times opened
	struct nc_pool *pool;           // async and imported blocks; NULL: memory of a graph
	struct nc_page *page;           // small blocks of device memory, if pages are played
	void *chunk;                    // async blocks: the piece of the pool they lie in
	struct nc_vmm_handle *handle;   // VMM mappings
	size_t handle_offset;           // VMM mappings: where in the handle they start
	struct nc_ipc *ipc;             // memory exported to or opened from a process
	bool external;                  // a buffer mapped from external memory
};

// Adds a range, drawing its buffer id. The caller filled in everything else and
// no live range overlaps it. Ownership passes to the tree. nc_lock held, as for
// all functions here.
void nc_range_insert(struct nc_range *range);

// Takes a range out; the caller frees it.
void nc_range_remove(struct nc_range *range);

// The range that contains the address, or NULL.
struct nc_range *nc_range_at(cu_ptr address);

// The range that starts at the address, or NULL.
struct nc_range *nc_range_based(cu_ptr address);

// The first range that ends beyond the address, or NULL: walks the ranges in
// address order.
struct nc_range *nc_range_after(cu_ptr address);

// Whether the pages are shared with another mapping.
bool nc_range_is_shared(const struct nc_range *range);

// True when every byte can be read and written; false for a VMM mapping that was
// given no access.
bool nc_range_accessible(const struct nc_range *range);

// True when every byte of [address, address + bytes) lies in accessible
// ranges, which may be several adjacent ones, as VMM mappings are.
bool nc_range_covers(cu_ptr address, size_t bytes);

// Frees every range that belongs to the context through `destroy`.
void nc_range_sweep(struct nc_context *owner, void (*destroy)(struct nc_range *range));

#endif
