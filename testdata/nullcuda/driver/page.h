// Device memory as real devices give it (NULLCUDA_PAGES): in pages of 2 MiB that are
// paid for as a whole. A request below 1 MiB shares a page with others of its context; a
// larger one has pages of its own.
#ifndef NULLCUDA_PAGE_H
#define NULLCUDA_PAGE_H

#include "range.h"

#define NC_PAGE_SMALL ((size_t)1 << 20)

struct nc_page {
	struct nc_page *next;
	struct nc_context *owner;
	cu_ptr base;
	struct nc_ipc *ipc; // exported as a whole, NULL unless a block of it was
	size_t units;       // of 512 bytes in use
	unsigned char used[4096]; // one for each unit
};

// A block of less than NC_PAGE_SMALL in a page of the context, a new one at need.
// nc_lock held, as for all functions here.
cu_result nc_page_alloc(struct nc_context *context, size_t bytes, struct nc_range **out);

// Takes the block, which the ledger knows to be free, out of its page, and gives the
// page back with its last.
void nc_page_give(const struct nc_range *block);

#endif
