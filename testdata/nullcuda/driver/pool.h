// Asynchronous memory pools.
//
// A pool reserves device memory in chunks of 32 MiB, larger for larger requests
// and rounded to 2 MiB only when the device has no room for 32, and cuts blocks
// of 512-byte units from them, first fit. The reserve, not the blocks, occupies
// the device. A chunk without live blocks is given back by a trim, and by every
// synchronising call while the reserve exceeds the release threshold.
#ifndef NULLCUDA_POOL_H
#define NULLCUDA_POOL_H

#include "object.h"
#include "range.h"

struct nc_pool {
	struct nc_object object;
	struct nc_pool *next; // all pools, destroyed ones that still hold blocks included
	struct nc_chunk *chunks;
	cu_pool_props props;
	int device;
	bool is_default; // of its device: cannot be destroyed
	bool destroyed;
	int reuse[3]; // follow events, opportunistic, internal dependencies: accepted, no effect
	uint64_t threshold;
	uint64_t reserved, reserved_high, used, used_high; // bytes
	uint64_t blocks;
	unsigned char access[NC_MAX_DEVICES];
	int fd;           // exported: the descriptor that stands for the pool, else -1
	uint64_t inode;   // of that descriptor, also in the importing process
	bool imported;    // another process's: blocks are imported one by one, none is made
};

// A piece of a pool's reserve: its pages, and the memfd that holds them if the pool
// may be exported, else -1.
struct nc_pool_piece {
	cu_ptr base;
	size_t size;
	int fd;
};
struct nc_pool_piece nc_pool_piece_of(const struct nc_range *block);

// The pool that cuMemAllocAsync uses unless told otherwise. NULL when out of host
// memory. nc_lock held, as for all functions here.
struct nc_pool *nc_pool_default(int device);

// Cuts a block from the pool. It belongs to the device: it outlives every context.
cu_result nc_pool_alloc(struct nc_pool *pool, size_t bytes, struct nc_range **out);

// Gives a block back to its pool, and ends a destroyed pool with its last block.
void nc_pool_free(struct nc_range *block);

// A block that was imported into the pool is gone.
void nc_pool_unuse(struct nc_pool *pool);

// Gives chunks without live blocks back while more than `keep` bytes are reserved.
void nc_pool_trim(struct nc_pool *pool, uint64_t keep);
void nc_pool_trim_to_threshold(int device);
void nc_pool_trim_device(int device);

// A new pool on the list of all; its handle is not yet known to the program.
struct nc_pool *nc_pool_new(int device, const cu_pool_props *props);
void nc_pool_destroy(struct nc_pool *pool);

#endif
