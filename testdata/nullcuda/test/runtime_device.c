// Devices, contexts, threads, forks; NULLCUDA_DEVICES=2 is set.
#include "rt.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int state_fn(int device, unsigned *flags, int *active);

static void *driver_function(const char *name)
{
	void *function = NULL;
#if RT_MAJOR == 11
	CHECK_OK(cudaGetDriverEntryPoint(name, &function, 0));
#else
	int status = 7;
	CHECK_OK(cudaGetDriverEntryPoint(name, &function, 0, &status));
	CHECK_EQ(status, 0);
#endif
	return function;
}

static int is_active(int device)
{
	unsigned flags;
	int active = -1;
	CHECK_OK(((state_fn *)driver_function("cuDevicePrimaryCtxGetState"))(device, &flags, &active));
	return active;
}

// Questions create no context, work does, and cudaSetDevice does from 12 on.
static void test_lazy_context(void)
{
	int count, device, value;
	void *address;
	CHECK_OK(cudaGetDeviceCount(&count));
	CHECK_EQ(count, 2);
	CHECK_OK(cudaGetDevice(&device));
	CHECK_EQ(device, 0);
	CHECK_OK(cudaDeviceGetAttribute(&value, 75, 0));
	CHECK_EQ(value, 9);
	CHECK_EQ(is_active(0), 0);
	CHECK_OK(cudaFree(NULL));
	CHECK_EQ(is_active(0), 1);
	CHECK_EQ(is_active(1), 0);
	CHECK_OK(cudaSetDevice(1));
	CHECK_EQ(is_active(1), RT_MAJOR >= 12);
	CHECK_OK(cudaMalloc(&address, 1 << 20));
	CHECK_EQ(is_active(1), 1);
	CHECK_OK(cudaGetDevice(&device));
	CHECK_EQ(device, 1);
	rt_pointer_attributes found;
	CHECK_OK(cudaPointerGetAttributes(&found, address));
	CHECK_EQ(found.device, 1);
	CHECK_OK(cudaFree(address));
	CHECK_EQ(cudaSetDevice(2), RT_INVALID_DEVICE);
	CHECK_EQ(cudaSetDevice(-1), RT_INVALID_DEVICE);
	CHECK_OK(cudaSetDevice(0));
	cudaGetLastError();
}

static void test_properties(void)
{
	struct { rt_device_prop prop; unsigned char guard[64]; } now;
	memset(&now, 0xa5, sizeof now);
#if RT_MAJOR == 12
	CHECK_OK(cudaGetDeviceProperties_v2(&now.prop, 1));
	struct { rt_device_prop_legacy prop; unsigned char guard[64]; } old;
	memset(&old, 0xa5, sizeof old);
	CHECK_OK(cudaGetDeviceProperties(&old.prop, 1));
	CHECK(!strcmp(old.prop.name, "Null GPU") && *old.prop.major == 9);
	CHECK(old.guard[0] == 0xa5 && old.guard[63] == 0xa5);
#else
	CHECK_OK(cudaGetDeviceProperties(&now.prop, 1));
#endif
	CHECK(now.guard[0] == 0xa5 && now.guard[63] == 0xa5);
	CHECK(!strcmp(now.prop.name, "Null GPU"));
	CHECK_EQ(*now.prop.major, 9);
	CHECK_EQ(*now.prop.multiProcessorCount, 132);
	CHECK_EQ(*now.prop.warpSize, 32);
	size_t free_bytes, total;
	CHECK_OK(cudaMemGetInfo(&free_bytes, &total));
	CHECK_EQ(now.prop.totalGlobalMem[0], total);
	CHECK_EQ(now.prop.sharedMemPerBlockOptin, 227 << 10);
#if RT_MAJOR == 12
	CHECK_EQ(cudaGetDeviceProperties_v2(&now.prop, 2), RT_INVALID_DEVICE);
#else
	CHECK_EQ(cudaGetDeviceProperties(&now.prop, 2), RT_INVALID_DEVICE);
#endif
	char id[32];
	CHECK_OK(cudaDeviceGetPCIBusId(id, sizeof id, 0));
	CHECK_EQ(strlen(id), 12);
	cudaGetLastError();
}

static void test_versions(void)
{
	int version;
	CHECK_OK(cudaRuntimeGetVersion(&version));
	CHECK_EQ(version, RT_VERSION);
	CHECK_OK(cudaDriverGetVersion(&version));
	CHECK(version >= RT_MAJOR * 1000);
}

static void test_peers(void)
{
	int can;
	CHECK_OK(cudaDeviceCanAccessPeer(&can, 0, 1));
	CHECK_EQ(can, 1);
	CHECK_OK(cudaDeviceEnablePeerAccess(1, 0));
	CHECK_EQ(cudaDeviceEnablePeerAccess(1, 0), 704);
	CHECK_OK(cudaDeviceDisablePeerAccess(1));
	CHECK_EQ(cudaDeviceDisablePeerAccess(1), 705);
	cudaGetLastError();
}

// The current device and the last error belong to the thread.
static void *other_thread(void *unused)
{
	int device = -1;
	(void)unused;
	CHECK_EQ(cudaPeekAtLastError(), RT_OK);
	CHECK_OK(cudaGetDevice(&device));
	CHECK_EQ(device, 0);
	CHECK_OK(cudaSetDevice(1));
	CHECK_EQ(cudaSetDevice(9), RT_INVALID_DEVICE);
	return NULL;
}

static void test_threads(void)
{
	pthread_t thread;
	int device;
	CHECK_EQ(cudaFree((void *)1), RT_INVALID_VALUE);
	CHECK_OK(pthread_create(&thread, NULL, other_thread, NULL));
	pthread_join(thread, NULL);
	CHECK_OK(cudaGetDevice(&device));
	CHECK_EQ(device, 0);
	CHECK_EQ(cudaGetLastError(), RT_INVALID_VALUE);
}

static void test_fork(void)
{
	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		void *address;
		_exit(cudaMalloc(&address, 64) == 3 && cudaGetLastError() == 3 ? 0 : 1);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child);
	CHECK_EQ(status, 0);
}

static void *allocate_after_reset(void *address)
{
	CHECK_OK(cudaMalloc(address, 4096));
	return NULL;
}

// A reset frees everything of the device, and every thread can go on.
static void test_reset(void)
{
	void *address;
	pthread_t thread;
	CHECK_OK(cudaMalloc(&address, 1 << 20));
	CHECK_OK(cudaDeviceReset());
	CHECK_EQ(is_active(0), 0);
	CHECK_EQ(rt_used(), 0);
	CHECK_EQ(cudaFree(address), RT_INVALID_VALUE);
	CHECK_OK(pthread_create(&thread, NULL, allocate_after_reset, &address));
	pthread_join(thread, NULL);
	CHECK_EQ(rt_used(), 4096);
	CHECK_OK(cudaFree(address));
	cudaGetLastError();
}

// VMM users take the driver's functions from here.
static void test_entry_points(void)
{
	void *function = (void *)1;
#if RT_MAJOR == 11
	CHECK_OK(cudaGetDriverEntryPoint("cuMemCreate", &function, 0));
	CHECK(function != NULL);
	CHECK_EQ(cudaGetDriverEntryPoint("", &function, 0), RT_INVALID_VALUE);
#else
	int status;
	CHECK_OK(cudaGetDriverEntryPoint("cuMemCreate", &function, 0, &status));
	CHECK(function != NULL && status == 0);
	CHECK_OK(cudaGetDriverEntryPoint("cuNoSuchCall", &function, 0, &status));
	CHECK(function == NULL && status == 1);
	CHECK_OK(cudaGetDriverEntryPointByVersion("cuMemAllocAsync", &function, 10000, 0, &status));
	CHECK(function == NULL && status == 2);
	CHECK_EQ(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 99000, 0, &status), RT_INVALID_VALUE);
	void *legacy, *threaded;
	CHECK_OK(cudaGetDriverEntryPointByVersion("cuMemAllocAsync", &legacy, 12000, 0, &status));
	CHECK_OK(cudaGetDriverEntryPoint_ptsz("cuMemAllocAsync", &threaded, 0, &status));
	CHECK(legacy && threaded && legacy != threaded);
#endif
	cudaGetLastError();
}

TEST_MAIN
{
	test_lazy_context();
	test_versions();
	test_properties();
	test_peers();
	test_threads();
	test_fork();
	test_reset();
	test_entry_points();
	return check_done(TEST_NAME("runtime_device"));
}
