// The driver's functions handed to the program (the way of NCCL and PyTorch).
#include "runtime.h"

enum { FLAG_DEFAULT = 0, FLAG_PER_THREAD = 2 };

static int find(const char *name, void **function, int version, unsigned long long flags, int *status)
{
	RT_TRY(rt_driver());
	if (!name || !*name || !function || flags > FLAG_PER_THREAD)
		return RT_INVALID_VALUE;
#ifdef RT_THREAD_STREAM
	if (flags == FLAG_DEFAULT)
		flags = FLAG_PER_THREAD;
#endif
	int found;
	if (rt_proc_address(name, function, version, flags, &found) == CU_INVALID_VALUE)
		return RT_INVALID_VALUE;
	if (status)
		*status = found;
	return RT_OK;
}

// This runtime's version, or the driver's where that is older: a driver refuses to
// be asked for a version that it does not know.
static int own_version(void)
{
	int driver = 0;
	if (rt_driver() == RT_OK)
		rt_calls->cuDriverGetVersion(&driver);
	return driver < RT_VERSION ? driver : RT_VERSION;
}

#if RT_MAJOR == 11
RT_API RT_PTSZ(cudaGetDriverEntryPoint)(const char *name, void **function, unsigned long long flags)
{
	return rt_done(find(name, function, own_version(), flags, NULL));
}
#else
RT_API RT_PTSZ(cudaGetDriverEntryPoint)(const char *name, void **function, unsigned long long flags, int *status)
{
	return rt_done(find(name, function, own_version(), flags, status));
}

RT_API RT_PTSZ(cudaGetDriverEntryPointByVersion)(const char *name, void **function, unsigned version,
                                                unsigned long long flags, int *status)
{
	return rt_done(find(name, function, (int)version, flags, status));
}
#endif
