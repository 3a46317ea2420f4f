// The creations whose defaults the runtime fills in.
#include "runtime.h"

RT_API cudaStreamCreate(void **stream)
{
	int error = rt_enter();
	return rt_done(error == RT_OK ? rt_calls->cuStreamCreate(stream, 0) : error);
}

RT_API cudaEventCreate(void **event)
{
	int error = rt_enter();
	return rt_done(error == RT_OK ? rt_calls->cudaEventCreateWithFlags(event, 0) : error);
}

#if RT_MAJOR == 11
// Takes a configuration file nobody has any more.
RT_API cudaProfilerInitialize(const char *config, const char *output, int mode)
{
	(void)config, (void)output, (void)mode;
	return rt_done(rt_driver());
}
#endif
