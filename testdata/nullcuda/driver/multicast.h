// Multicast objects: handles that stand for memory of several devices at once.
#ifndef NULLCUDA_MULTICAST_H
#define NULLCUDA_MULTICAST_H

#include "vmm.h"

struct nc_multicast;

// Unbinds all memory and frees what is particular to multicast. nc_lock held.
void nc_multicast_free(struct nc_multicast *multicast);

// CU_ILLEGAL_STATE until every device that takes part was added: before that nothing
// is bound or mapped. nc_lock held.
cu_result nc_multicast_complete(const struct nc_multicast *multicast);

// Whether the descriptor is an exported multicast object, and a handle for it. Takes
// nc_lock.
bool nc_multicast_is(int fd);
cu_result nc_multicast_import(uint64_t *out, int fd);

#endif
