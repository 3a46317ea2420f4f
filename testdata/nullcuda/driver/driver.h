// What every file of the null driver shares: the export marker, the state
// checks at the top of each entry point, and the one lock.
//
// Design
// Every public function is a thin shell: check, take the lock, change the
// registries, account, unlock. Work on user memory (copies, host callbacks) runs
// without the lock. All device work is done before the call returns, so a
// stream is never busy and an event is complete once recorded.
//
// Invariants
// 1. All registries are guarded by nc_lock. Otherwise a free racing a copy's
//    bounds check would read a dead node.
// 2. A forked child of an initialised process gets CU_NOT_INITIALIZED before it
//    can reach nc_lock: the lock may be held for ever by a thread that is gone.
// 3. Handles are looked up before they are dereferenced; a stale one is an
//    error code, never a crash.
#ifndef NULLCUDA_DRIVER_H
#define NULLCUDA_DRIVER_H

#include "abi.h"
#include "../shared/config.h"

#include <pthread.h>
#include <stdbool.h>

#define CU_API __attribute__((visibility("default"))) cu_result

extern pthread_mutex_t nc_lock;

// CU_OK once cuInit succeeded in this process, CU_NOT_INITIALIZED before that
// and in forked children.
cu_result nc_init_check(void);

// The device is one of NULLCUDA_DEVICES.
static inline bool nc_device_valid(cu_device device) { return device >= 0 && device < nc_config()->devices; }

#define NC_TRY(expression)                    \
	do {                                  \
		cu_result try_ = (expression); \
		if (try_ != CU_OK)            \
			return try_;          \
	} while (0)

// Scope guard: NC_LOCKED() holds nc_lock until the function returns.
static inline void nc_unlock_guard(int *unused) { (void)unused; pthread_mutex_unlock(&nc_lock); }
#define NC_LOCKED() \
	__attribute__((cleanup(nc_unlock_guard), unused)) int locked_ = pthread_mutex_lock(&nc_lock)

// The start of an entry point that works on registries: refuses in forked
// children, where the lock may never come free, then takes the lock.
#define NC_ENTER()                \
	NC_TRY(nc_init_check());  \
	NC_LOCKED()

static inline size_t nc_round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Largest size any call accepts; beyond it sums of addresses could wrap.
#define NC_SIZE_MAX ((size_t)1 << 46)

#endif
