#include "ledger.h"
#include "../shared/account.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct nc_account account;
static int log_fd = -1;
static uint64_t sequence;
static struct {
	uint64_t requested, charged;
} live[NC_MAX_DEVICES];

static const char *const kind_names[] = {
	[NC_DEVICE] = "device",   [NC_PAGE] = "page",
	 [NC_POOL] = "pool",       [NC_VMM] = "vmm",   [NC_ARRAY] = "array",
	[NC_CONTEXT] = "context", [NC_MODULE] = "module",   [NC_MANAGED] = "managed",
	[NC_HOST] = "host",       [NC_ASYNC] = "async",     [NC_IPC] = "ipc",
	[NC_SPARSE] = "sparse",   [NC_MULTICAST] = "multicast",
};

// Writes the configured path with every %p replaced by the pid. False when it
// does not fit.
static bool expand_pid(const char *pattern, char *path, size_t size)
{
	size_t n = 0;
	while (*pattern && n < size) {
		if (pattern[0] == '%' && pattern[1] == 'p') {
			n += (size_t)snprintf(path + n, size - n, "%d", getpid());
			pattern += 2;
		} else {
			path[n++] = *pattern++;
		}
	}
	if (n >= size)
		return false;
	path[n] = 0;
	return true;
}

static void open_log(void)
{
	char path[4096];
	const char *pattern = nc_config()->log;
	if (!pattern)
		return;
	errno = ENAMETOOLONG;
	if (expand_pid(pattern, path, sizeof path))
		log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (log_fd < 0)
		fprintf(stderr, "nullcuda: NULLCUDA_LOG=%s: %s; no log is written\n", pattern, strerror(errno));
}

cu_result nc_ledger_open(void)
{
	if (!account.file)
		nc_account_open(&account, nc_config()->shared);
	nc_account_lock(&account);
	int claimed = nc_account_claim(&account);
	nc_account_unlock(&account);
	if (!claimed) {
		fprintf(stderr, "nullcuda: the accounting file is full: %d processes use null GPUs\n", NC_ACCOUNT_SLOTS);
		return CU_OUT_OF_MEMORY;
	}
	open_log();
	return CU_OK;
}

static void log_event(
	int device, enum nc_kind kind, const char *op, uint64_t address, uint64_t requested, uint64_t charged)
{
	char line[256];
	struct timespec now;
	if (log_fd < 0)
		return;
	int saved = errno;
	clock_gettime(CLOCK_MONOTONIC, &now);
	int n = snprintf(line, sizeof line, "%llu %llu %d %s %s 0x%llx %llu %llu %llu %llu\n",
		(unsigned long long)++sequence, now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec, device,
		kind_names[kind], op, (unsigned long long)address, (unsigned long long)requested, (unsigned long long)charged,
		(unsigned long long)live[device].requested, (unsigned long long)live[device].charged);
	if (write(log_fd, line, (size_t)n) != n) {
		fprintf(stderr, "nullcuda: NULLCUDA_LOG: %s; the log ends at event %llu\n", strerror(errno),
		        (unsigned long long)sequence);
		close(log_fd);
		log_fd = -1;
	}
	errno = saved;
}

// Bytes of the device not taken. Account lock held.
static uint64_t room(int device)
{
	uint64_t used = nc_account_used(&account, device), total = nc_config()->device_bytes - nc_config()->reserved_bytes;
	return used < total ? total - used : 0;
}

// The same, after making sure that a refusal is not due to a dead process.
static bool fits_locked(int device, uint64_t charged)
{
	if (charged <= room(device))
		return true;
	nc_account_reap(&account);
	return charged <= room(device);
}

bool nc_ledger_fits(int device, uint64_t charged)
{
	nc_account_lock(&account);
	bool fits = fits_locked(device, charged);
	nc_account_unlock(&account);
	return fits;
}

cu_result nc_ledger_alloc(int device, enum nc_kind kind, uint64_t address, uint64_t requested, uint64_t charged)
{
	if (kind > NC_KIND_OCCUPYING) {
		log_event(device, kind, "alloc", address, requested, charged);
		return CU_OK;
	}
	nc_account_lock(&account);
	bool fits = fits_locked(device, charged);
	if (fits) {
		account.own->used[device] += charged;
		live[device].requested += requested;
		live[device].charged += charged;
	}
	log_event(device, kind, fits ? "alloc" : "oom", fits ? address : 0, requested, charged);
	nc_account_unlock(&account);
	return fits ? CU_OK : CU_OUT_OF_MEMORY;
}

void nc_ledger_free(int device, enum nc_kind kind, uint64_t address, uint64_t requested, uint64_t charged)
{
	if (kind > NC_KIND_OCCUPYING) {
		log_event(device, kind, "free", address, requested, charged);
		return;
	}
	nc_account_lock(&account);
	account.own->used[device] -= charged;
	live[device].requested -= requested;
	live[device].charged -= charged;
	log_event(device, kind, "free", address, requested, charged);
	nc_account_unlock(&account);
}

void nc_ledger_context(int device, int change)
{
	nc_account_lock(&account);
	account.own->contexts[device] += change;
	nc_account_unlock(&account);
}

uint64_t nc_ledger_free_bytes(int device)
{
	nc_account_lock(&account);
	nc_account_reap(&account);
	uint64_t free_bytes = room(device);
	nc_account_unlock(&account);
	return free_bytes;
}
