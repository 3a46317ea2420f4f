// Memory shared between processes by cuIpcGetMemHandle.
#ifndef NULLCUDA_IPC_H
#define NULLCUDA_IPC_H

#include "range.h"

// What a range has when it is exported or was opened.
struct nc_ipc {
	int fd;         // exported: the memfd that holds the pages; opened: -1
	uint64_t inode; // of the memfd: names the memory
};

// Releases what exported or opened memory holds for sharing, before its pages go. nc_lock held.
void nc_ipc_forget(struct nc_ipc *ipc);

#endif
