// The accounting file: how many bytes of each null GPU every process of this
// user holds. It is what makes free memory true across processes, and what the
// null NVML reports.
//
// Design
// One sparse file per user, mapped by every process: a header and a table of
// slots, one slot per process. A process writes its own slot only, so a process
// killed half way leaves at worst a stale slot, which the next claim or sum
// removes after finding that (pid, start time) is gone.
//
// Locking
// A robust process-shared mutex in the file: a holder that is killed leaves the
// lock to the next caller. No descriptor stays open, so a program that closes
// every descriptor it did not open does no harm. Order: a caller takes its own
// mutexes first.
//
// All processes of a file must see each other's pids (one PID namespace).
#ifndef NULLCUDA_ACCOUNT_H
#define NULLCUDA_ACCOUNT_H

#include "config.h"

#include <stdint.h>
#include <sys/types.h>

enum { NC_ACCOUNT_SLOTS = 1024 };

struct nc_account_slot {
	_Atomic int32_t pid;           // 0: free
	int32_t contexts[NC_MAX_DEVICES]; // live contexts; a process is listed by NVML while one exists
	uint64_t start_time;           // clock ticks since boot, field 22 of /proc/pid/stat
	_Atomic uint64_t used[NC_MAX_DEVICES];
};

struct nc_account {
	struct nc_account_file *file; // mapped; stays mapped until the process ends
	struct nc_account_slot *own;  // NULL until nc_account_claim
};

// Opens the accounting file named by the configuration, creating it. Never
// fails: when no file can be used it says so once on stderr and the account is
// private to the process.
void nc_account_open(struct nc_account *account, const char *shared);

void nc_account_lock(struct nc_account *account);
void nc_account_unlock(struct nc_account *account);

// Takes a slot for this process. False when all slots are taken by live
// processes. Lock held.
int nc_account_claim(struct nc_account *account);

// Clears the slots of processes that are gone. Costs a look into /proc for each
// other process, so only who must know the exact truth calls it. Lock held.
void nc_account_reap(struct nc_account *account);

// Bytes of the device held by all processes that have a slot. Lock held.
uint64_t nc_account_used(const struct nc_account *account, int device);

struct nc_account_process {
	pid_t pid;
	uint64_t used;
};

// Fills at most `capacity` entries with the live processes that have a context
// on the device and returns how many there are. Lock held.
unsigned nc_account_processes(
	struct nc_account *account, int device, struct nc_account_process *out, unsigned capacity);

#endif
