// Linear memory: how ranges get their pages and give them back.
#ifndef NULLCUDA_MEMORY_H
#define NULLCUDA_MEMORY_H

#include "range.h"

// Readable, writable, zeroed pages that cost nothing until touched; NULL when
// the address space is exhausted. `bytes` is a multiple of the page size.
void *nc_pages_new(size_t bytes);

// Whether cuMemFree takes it.
bool nc_memory_is_freeable(const struct nc_range *range);

// Frees a range of any kind but a VMM mapping: pages, charge, registry entry.
// nc_lock held.
void nc_memory_release(struct nc_range *range);

// Allocates and charges a range of `kind` that belongs to the context.
cu_result nc_memory_new(struct nc_context *context, enum nc_kind kind, size_t bytes, struct nc_range **out);

#endif
