// The current device of each thread and its primary context.
#include "runtime.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MAX_DEVICES = 64, FLAG_MAP_HOST = 8, FLAGS_VALID = 0x3f };

// Guards the creation of primary contexts.
static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;
static void *_Atomic primaries[MAX_DEVICES]; // NULL: not retained
static unsigned wanted_flags[MAX_DEVICES];   // primary_lock
// Counts cudaDeviceReset calls: a context that a thread made current before the
// last one must be fetched again.
static atomic_uint resets;

static __thread struct {
	int device;
	void *context; // the primary context made current by this runtime, or NULL
	unsigned resets;
} thread;

int rt_device_check(int device)
{
	int count;
	RT_TRY(rt_calls->cuDeviceGetCount(&count));
	return device >= 0 && device < count && device < MAX_DEVICES ? RT_OK : RT_INVALID_DEVICE;
}

int rt_primary(int device, void **context)
{
	RT_TRY(rt_driver());
	RT_TRY(rt_device_check(device));
	*context = atomic_load(&primaries[device]);
	if (*context)
		return RT_OK;
	pthread_mutex_lock(&primary_lock);
	int error = RT_OK;
	*context = atomic_load(&primaries[device]);
	if (!*context) {
		if (wanted_flags[device])
			error = rt_calls->cuDevicePrimaryCtxSetFlags(device, wanted_flags[device]);
		if (error == RT_OK)
			error = rt_calls->cuDevicePrimaryCtxRetain(context, device);
		if (error == RT_OK)
			atomic_store(&primaries[device], *context);
	}
	pthread_mutex_unlock(&primary_lock);
	return error;
}

static int make_current(int device)
{
	void *context;
	RT_TRY(rt_primary(device, &context));
	RT_TRY(rt_calls->cuCtxSetCurrent(context));
	thread.context = context;
	thread.resets = atomic_load(&resets);
	return RT_OK;
}

int rt_enter(void)
{
	RT_TRY(rt_driver());
	void *current;
	RT_TRY(rt_calls->cuCtxGetCurrent(&current));
	bool stale = current == thread.context && thread.resets != atomic_load(&resets);
	if (current && !stale)
		return RT_OK;
	return make_current(thread.device);
}

// A context that the program made current through the driver wins over the
// device this thread chose, as in CUDA.
int rt_device_current(int *device)
{
	RT_TRY(rt_driver());
	void *current;
	RT_TRY(rt_calls->cuCtxGetCurrent(&current));
	if (current && current != thread.context)
		return rt_calls->cuCtxGetDevice(device);
	*device = thread.device;
	return RT_OK;
}

static int get_device(int *device)
{
	if (!device)
		return RT_INVALID_VALUE;
	return rt_device_current(device);
}

// Runtimes before 12 leave the context to the first call that needs it.
static int set_device(int device)
{
	RT_TRY(rt_driver());
	RT_TRY(rt_device_check(device));
	thread.device = device;
	if (RT_MAJOR >= 12 || atomic_load(&primaries[device]))
		return make_current(device);
	thread.context = NULL;
	return rt_calls->cuCtxSetCurrent(NULL);
}

static int reset(void)
{
	int device;
	RT_TRY(rt_device_current(&device));
	RT_TRY(rt_device_check(device));
	pthread_mutex_lock(&primary_lock);
	int error = rt_calls->cuDevicePrimaryCtxReset(device);
	atomic_store(&primaries[device], NULL);
	wanted_flags[device] = 0;
	atomic_fetch_add(&resets, 1);
	pthread_mutex_unlock(&primary_lock);
	return error;
}

static int set_flags(int device, unsigned flags)
{
	if (flags & ~(unsigned)FLAGS_VALID)
		return RT_INVALID_VALUE;
	RT_TRY(rt_device_check(device));
	pthread_mutex_lock(&primary_lock);
	wanted_flags[device] = flags;
	int error = atomic_load(&primaries[device]) ? rt_calls->cuDevicePrimaryCtxSetFlags(device, flags) : RT_OK;
	pthread_mutex_unlock(&primary_lock);
	return error;
}

static int get_flags(unsigned *flags)
{
	int device, active;
	if (!flags)
		return RT_INVALID_VALUE;
	RT_TRY(rt_device_current(&device));
	RT_TRY(rt_calls->cuDevicePrimaryCtxGetState(device, flags, &active));
	if (!active)
		*flags = wanted_flags[device];
	*flags |= FLAG_MAP_HOST;
	return RT_OK;
}

RT_API cudaGetDevice(int *device) { return rt_done(get_device(device)); }
RT_API cudaSetDevice(int device) { return rt_done(set_device(device)); }
RT_API cudaDeviceReset(void) { return rt_done(reset()); }
RT_API cudaGetDeviceFlags(unsigned *flags) { return rt_done(get_flags(flags)); }

RT_API cudaGetDeviceCount(int *count)
{
	if (!count)
		return rt_done(RT_INVALID_VALUE);
	int error = rt_driver();
	if (error == RT_OK)
		error = rt_calls->cuDeviceGetCount(count);
	return rt_done(error);
}

RT_API cudaSetDeviceFlags(unsigned flags)
{
	int device;
	int error = rt_device_current(&device);
	return rt_done(error == RT_OK ? set_flags(device, flags) : error);
}

#if RT_MAJOR >= 12
RT_API cudaInitDevice(int device, unsigned device_flags, unsigned flags)
{
	enum { FLAGS_ARE_VALID = 1 };
	void *context;
	int error = rt_driver();
	if (error == RT_OK && flags & FLAGS_ARE_VALID)
		error = set_flags(device, device_flags);
	return rt_done(error == RT_OK ? rt_primary(device, &context) : error);
}
#endif

// Every null device is alike, so the first is as good as any.
RT_API cudaChooseDevice(int *device, const rt_device_prop *wanted)
{
	if (!device || !wanted)
		return rt_done(RT_INVALID_VALUE);
	*device = 0;
	return RT_OK;
}

RT_API cudaSetValidDevices(const int *devices, int count)
{
	int error = rt_driver();
	if (error == RT_OK && (count < 0 || (count && !devices)))
		error = RT_INVALID_VALUE;
	for (int i = 0; error == RT_OK && i < count; i++)
		error = rt_device_check(devices[i]);
	if (error == RT_OK && count)
		thread.device = devices[0];
	return rt_done(error);
}

static int peer_access(int peer, bool enable, unsigned flags)
{
	void *context;
	RT_TRY(rt_enter());
	RT_TRY(rt_primary(peer, &context));
	return enable ? rt_calls->cuCtxEnablePeerAccess(context, flags) : rt_calls->cuCtxDisablePeerAccess(context);
}

RT_API cudaDeviceEnablePeerAccess(int peer, unsigned flags) { return rt_done(peer_access(peer, true, flags)); }
RT_API cudaDeviceDisablePeerAccess(int peer) { return rt_done(peer_access(peer, false, 0)); }

#if RT_MAJOR < 13
RT_API cudaThreadExit(void) { return rt_done(reset()); }
#endif
