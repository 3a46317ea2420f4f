// What the process holds: the only place that charges device memory, talks to
// the shared account and writes the NULLCUDA_LOG oracle.
#ifndef NULLCUDA_LEDGER_H
#define NULLCUDA_LEDGER_H

#include "driver.h"

// The names in the log. The kinds up to NC_KIND_OCCUPYING take device memory;
// the others are recorded but change no device's totals: host and managed
// memory lie in host memory, an async block lies inside its pool's reserve.
enum nc_kind {
	NC_DEVICE,  // cuMemAlloc, cuMemAllocPitch
	NC_PAGE,    // what small blocks of the former lie in, if pages are played
	NC_POOL,    // reserve of an asynchronous pool
	NC_VMM,     // cuMemCreate
	NC_ARRAY,   // arrays and mipmapped arrays
	NC_CONTEXT, // NULLCUDA_CONTEXT of each live context
	NC_MODULE,  // a module's global variables
	NC_KIND_OCCUPYING = NC_MODULE,
	NC_MANAGED, // cuMemAllocManaged
	NC_HOST,    // pinned host memory
	NC_ASYNC,   // cuMemAllocAsync and cuMemAllocFromPoolAsync
	NC_IPC,     // another process's or API's memory opened here: foreign, never charged
	NC_SPARSE,    // arrays without memory of their own: VMM handles pay for their tiles
	NC_MULTICAST, // a multicast object: addresses for memory that is charged elsewhere
};

// Device memory is handed out in units of 512 bytes, as its addresses are
// aligned.
#define NC_UNIT 512

// Opens the account and the log. nc_lock held.
cu_result nc_ledger_open(void);

// Charges `charged` bytes to the device and logs the event, or logs an "oom"
// line and returns CU_OUT_OF_MEMORY when an occupying kind does not fit beside
// what all processes of the user hold. nc_lock held.
cu_result nc_ledger_alloc(int device, enum nc_kind kind, uint64_t address, uint64_t requested, uint64_t charged);

// The reverse, with the same numbers. nc_lock held.
void nc_ledger_free(int device, enum nc_kind kind, uint64_t address, uint64_t requested, uint64_t charged);

// Tells other processes that a context came (+1) or went (-1). nc_lock held.
void nc_ledger_context(int device, int change);

// Whether an occupying allocation of this size would succeed now. nc_lock held.
bool nc_ledger_fits(int device, uint64_t charged);

// Bytes of the device that no process holds. nc_lock held.
uint64_t nc_ledger_free_bytes(int device);

#endif
