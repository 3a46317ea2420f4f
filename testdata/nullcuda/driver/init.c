#include "driver.h"
#include "ledger.h"
#include "../shared/memfd.h"

#include <sys/mman.h>
#include <unistd.h>

pthread_mutex_t nc_lock = PTHREAD_MUTEX_INITIALIZER;

enum { STATE_NEW, STATE_READY };
static _Atomic int state;
// One page that the kernel zeroes in every kind of forked child, raw clone
// included. It reads 1 in the process that initialised and 0 in its children.
static _Atomic int *same_process;

cu_result nc_init_check(void)
{
	return state == STATE_READY && *same_process ? CU_OK : CU_NOT_INITIALIZED;
}

// A real driver keeps its device files mapped while it is in use, and tools look
// for that in /proc: a page of that name stands in for them.
static void map_stand_in(void)
{
	int fd = nc_memfd("/dev/nvidia0");
	if (fd < 0)
		return;
	mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
}

static cu_result initialise(void)
{
	long page = sysconf(_SC_PAGESIZE);
	void *mark = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mark == MAP_FAILED)
		return CU_OUT_OF_MEMORY;
	madvise(mark, (size_t)page, MADV_WIPEONFORK);
	cu_result result = nc_ledger_open();
	if (result != CU_OK) {
		munmap(mark, (size_t)page);
		return result;
	}
	same_process = mark;
	*same_process = 1;
	map_stand_in();
	state = STATE_READY;
	return CU_OK;
}

CU_API cuInit(unsigned flags)
{
	if (flags)
		return CU_INVALID_VALUE;
	if (state == STATE_READY)
		return nc_init_check();
	NC_LOCKED();
	return state == STATE_READY ? CU_OK : initialise();
}

CU_API cuDriverGetVersion(int *version)
{
	if (!version)
		return CU_INVALID_VALUE;
	*version = nc_config()->driver_version;
	return CU_OK;
}
