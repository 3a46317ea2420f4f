// Contexts: the stack of each thread, what they cost, and what ends with them.
// Runs with two devices and contexts of 100 MiB.
#include "cu.h"

#include <pthread.h>
#include <time.h>

static void test_primary(void)
{
	void *context, *again, *current;
	unsigned flags;
	int active, device;
	cu_ptr a;
	CHECK_OK(cuDevicePrimaryCtxSetFlags_v2(0, 4));
	CHECK_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK_EQ(active, 0);
	CHECK_EQ(flags, 4);
	CHECK_OK(cuCtxGetCurrent(&current));
	CHECK(current == NULL);
	CHECK_EQ(cuCtxGetDevice(&device), CU_INVALID_CONTEXT);
	CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK_OK(cuDevicePrimaryCtxRetain(&again, 0));
	CHECK(context == again);
	CHECK_OK(cuCtxSetCurrent(context));
	CHECK_EQ(used_now(), 100 * MIB);
	CHECK_OK(cuMemAlloc_v2(&a, 5 * MIB));
	CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
	CHECK_EQ(used_now(), 105 * MIB); // one retain is left
	CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
	CHECK_EQ(cuMemFree_v2(a), CU_CONTEXT_IS_DESTROYED);
	CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), CU_INVALID_CONTEXT);
	CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK_EQ(used_now(), 100 * MIB); // the memory went with it
	CHECK_EQ(cuMemFree_v2(a), CU_INVALID_VALUE);
	CHECK_OK(cuMemAlloc_v2(&a, 5 * MIB));
	CHECK_OK(cuDevicePrimaryCtxReset_v2(0));
	CHECK_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK_EQ(active, 0);
	CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK_EQ(used_now(), 100 * MIB);
	CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
	CHECK_EQ(used_now(), 100 * MIB); // a reset releases for nobody: the retain before it counts
	CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
	CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), CU_INVALID_CONTEXT);
	CHECK_OK(cuCtxSetCurrent(NULL));
	CHECK_EQ(cuDevicePrimaryCtxRetain(&context, 2), CU_INVALID_DEVICE);
}

static void test_stack(void)
{
	void *a, *b, *popped;
	int device;
	CHECK_OK(cuCtxCreate_v2(&a, 0, 0));
	CHECK_OK(cuCtxCreate_v4(&b, NULL, 0, 1));
	CHECK_OK(cuCtxGetDevice(&device));
	CHECK_EQ(device, 1);
	CHECK_OK(cuCtxPopCurrent_v2(&popped));
	CHECK(popped == b);
	CHECK_OK(cuCtxGetDevice(&device));
	CHECK_EQ(device, 0);
	CHECK_OK(cuCtxSetCurrent(b)); // replaces a
	CHECK_OK(cuCtxPopCurrent_v2(NULL));
	CHECK_EQ(cuCtxPopCurrent_v2(&popped), CU_INVALID_CONTEXT);
	CHECK_OK(cuCtxPushCurrent_v2(a));
	CHECK_OK(cuCtxDestroy_v2(a)); // current: leaves the stack
	CHECK_EQ(cuCtxGetDevice(&device), CU_INVALID_CONTEXT);
	CHECK_OK(cuCtxDestroy_v2(b));
	CHECK_EQ(cuCtxDestroy_v2(b), CU_CONTEXT_IS_DESTROYED);
	CHECK_EQ(cuCtxPushCurrent_v2(b), CU_CONTEXT_IS_DESTROYED);
	CHECK_EQ(cuCtxSetCurrent(&a), CU_INVALID_CONTEXT);
}

// Everything made in a context goes with it, and only that: a library stays, and has its variables anew in another one.
static void test_destroy_frees_what_it_owns(void)
{
	void *keep, *doomed, *stream, *event, *module, *library, *pinned, *array;
	cu_ptr a, b, async, global, shared, managed;
	const cu_array_desc desc = {100, 100, 0x20, 1};
	CHECK_OK(cuCtxCreate_v2(&keep, 0, 0));
	CHECK_OK(cuMemAlloc_v2(&a, MIB));
	CHECK_OK(cuCtxCreate_v2(&doomed, 0, 0));
	CHECK_OK(cuMemAlloc_v2(&b, MIB));
	CHECK_OK(cuStreamCreate(&stream, 0));
	CHECK_OK(cuEventCreate(&event, 0));
	CHECK_OK(cuModuleLoadData(&module, "image"));
	CHECK_OK(cuModuleGetGlobal_v2(&global, NULL, module, "table"));
	CHECK_OK(cuLibraryLoadData(&library, "image", NULL, NULL, 0, NULL, NULL, 0));
	CHECK_OK(cuLibraryGetGlobal(&shared, NULL, library, "table"));
	CHECK_OK(cuMemHostAlloc(&pinned, 1000, 0));
	CHECK_OK(cuArrayCreate_v2(&array, &desc));
	CHECK_OK(cuMemAllocAsync(&async, 1000, stream));
	CHECK_EQ(used_now(), 200 * MIB + 2 * MIB + 2 * 64 * KIB + 40448 + 32 * MIB);
	CHECK_OK(cuCtxDestroy_v2(doomed));
	CHECK_EQ(used_now(), 101 * MIB + 32 * MIB); // the pool belongs to the device
	CHECK_EQ(cuStreamQuery(stream), CU_INVALID_HANDLE);
	CHECK_EQ(cuEventQuery(event), CU_INVALID_HANDLE);
	CHECK_EQ(cuModuleUnload(module), CU_INVALID_HANDLE);
	CHECK_EQ(cuArrayDestroy(array), CU_INVALID_HANDLE);
	CHECK_EQ(cuMemFree_v2(b), CU_INVALID_VALUE);
	CHECK_OK(cuLibraryGetGlobal(&shared, NULL, library, "table"));
	CHECK_EQ(used_now(), 101 * MIB + 64 * KIB + 32 * MIB);
	CHECK_OK(cuLibraryGetManaged(&managed, NULL, library, "managed"));
	CHECK_OK(cuMemsetD8_v2(managed, 1, 8));
	CHECK_OK(cuLibraryUnload(library));
	CHECK_EQ(cuMemsetD8_v2(managed, 1, 8), CU_INVALID_VALUE);
	CHECK_OK(cuMemFree_v2(async)); // so do its blocks
	CHECK_EQ(cuMemFreeHost(pinned), CU_INVALID_VALUE);
	CHECK_OK(cuMemFree_v2(a));
	CHECK_OK(cuCtxSynchronize());
	CHECK_EQ(used_now(), 100 * MIB);
	CHECK_OK(cuCtxDestroy_v2(keep));
}

// What a graph's memory and a pool keep for later goes with the last context of the device.
static void test_last_context_trims(void)
{
	void *context, *graph, *exec, *alloc_node, *free_node, *pool;
	uint64_t keep = UINT64_MAX;
	cu_ptr async;
	cu_alloc_node alloc = {.pool = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}}, .size = 1000};
	CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
	CHECK_OK(cuGraphCreate(&graph, 0));
	CHECK_OK(cuGraphAddMemAllocNode(&alloc_node, graph, NULL, 0, &alloc));
	CHECK_OK(cuGraphAddMemFreeNode(&free_node, graph, &alloc_node, 1, alloc.address));
	CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK_OK(cuGraphLaunch(exec, NULL));
	CHECK_OK(cuDeviceGetDefaultMemPool(&pool, 0));
	CHECK_OK(cuMemPoolSetAttribute(pool, 4, &keep));
	CHECK_OK(cuMemAllocAsync(&async, 1000, NULL));
	CHECK_OK(cuMemFreeAsync(async, NULL));
	CHECK_EQ(used_now(), 100 * MIB + 2 * MIB + 32 * MIB);
	CHECK_OK(cuCtxDestroy_v2(context));
	CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
	CHECK_EQ(used_now(), 100 * MIB);
	keep = 0;
	CHECK_OK(cuMemPoolSetAttribute(pool, 4, &keep));
	CHECK_OK(cuGraphExecDestroy(exec));
	CHECK_OK(cuGraphDestroy(graph));
	CHECK_OK(cuCtxDestroy_v2(context));
}

static void *other_thread(void *context)
{
	void *current = &current;
	CHECK_OK(cuCtxGetCurrent(&current));
	CHECK(current == NULL); // currency is per thread
	CHECK_OK(cuCtxSetCurrent(context));
	cu_ptr *address = malloc(sizeof *address);
	CHECK_OK(cuMemAlloc_v2(address, 1000));
	return address;
}

static void test_threads_have_own_stacks(void)
{
	void *context, *address;
	pthread_t thread;
	CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
	pthread_create(&thread, NULL, other_thread, context);
	pthread_join(thread, &address);
	CHECK_OK(cuMemFree_v2(*(cu_ptr *)address)); // of one context, whichever thread
	free(address);
	CHECK_OK(cuCtxDestroy_v2(context));
}

static void test_two_devices(void)
{
	void *zero, *one;
	cu_ptr a, b;
	int can;
	size_t free_bytes;
	CHECK_OK(cuCtxCreate_v2(&zero, 0, 0));
	CHECK_OK(cuMemAlloc_v2(&a, 7 * MIB));
	CHECK_OK(cuCtxCreate_v2(&one, 0, 1));
	CHECK_EQ(used_now(), 100 * MIB);
	CHECK_OK(cuMemAlloc_v2(&b, 3 * MIB));
	CHECK_EQ(used_now(), 103 * MIB);
	CHECK_OK(cuDeviceCanAccessPeer(&can, 0, 1));
	CHECK_EQ(can, 1);
	CHECK_OK(cuCtxEnablePeerAccess(zero, 0));
	CHECK_EQ(cuCtxEnablePeerAccess(zero, 0), CU_PEER_ACCESS_ALREADY_ENABLED);
	CHECK_OK(cuMemsetD8_v2(a, 9, 10));
	CHECK_OK(cuMemcpyDtoD_v2(b, a, 10));
	CHECK_OK(cuCtxDisablePeerAccess(zero));
	CHECK_EQ(cuCtxDisablePeerAccess(zero), CU_PEER_ACCESS_NOT_ENABLED);
	CHECK_OK(cuCtxSetCurrent(zero));
	CHECK_OK(cuMemGetInfo_v2(&free_bytes, NULL));
	CHECK_EQ(free_bytes, 1 * GIB - 107 * MIB);
	CHECK_OK(cuCtxDestroy_v2(zero));
	CHECK_OK(cuCtxDestroy_v2(one));
}

static void test_cost_can_exhaust_the_device(void)
{
	void *contexts[11], *one_more;
	int count = 0;
	while (count < 11 && cuCtxCreate_v2(&contexts[count], 0, 0) == 0)
		count++;
	CHECK_EQ(count, 10); // 1024 MiB hold ten contexts of 100 MiB
	CHECK_EQ(cuCtxCreate_v2(&one_more, 0, 0), CU_OUT_OF_MEMORY);
	while (count)
		CHECK_OK(cuCtxDestroy_v2(contexts[--count]));
}

static void test_limits(void)
{
	void *context;
	size_t value;
	unsigned version;
	CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
	CHECK_OK(cuCtxGetLimit(&value, 2));
	CHECK_EQ(value, 8 * MIB);
	CHECK_OK(cuCtxSetLimit(2, 16 * MIB));
	CHECK_OK(cuCtxGetLimit(&value, 2));
	CHECK_EQ(value, 16 * MIB);
	CHECK_EQ(cuCtxGetLimit(&value, 99), CU_UNSUPPORTED_LIMIT);
	CHECK_OK(cuCtxGetApiVersion(context, &version));
	CHECK_EQ(version, 3020);
	CHECK_OK(cuCtxDestroy_v2(context));
}

static double milliseconds_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void count_call(void *count) { ++*(int *)count; }

static void test_streams_and_events(void)
{
	void *context, *stream, *start_event, *end_event, *owner;
	int priority, calls = 0;
	float milliseconds = -1;
	ull id1, id2;
	CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
	CHECK_OK(cuStreamCreateWithPriority(&stream, 1, -100));
	CHECK_OK(cuStreamGetPriority(stream, &priority));
	CHECK_EQ(priority, -5);
	CHECK_OK(cuStreamGetCtx(stream, &owner));
	CHECK(owner == context);
	CHECK_OK(cuStreamGetId(stream, &id1));
	CHECK_OK(cuStreamGetId(NULL, &id2));
	CHECK(id1 != id2);
	CHECK_OK(cuEventCreate(&start_event, 0));
	CHECK_OK(cuEventCreate(&end_event, 0));
	CHECK_EQ(cuEventElapsedTime(&milliseconds, start_event, end_event), CU_INVALID_HANDLE);
	double outer = milliseconds_now();
	CHECK_OK(cuEventRecord(start_event, stream));
	double inner = milliseconds_now();
	usleep(3000);
	CHECK_OK(cuLaunchHostFunc(stream, count_call, &calls));
	CHECK_EQ(calls, 1);
	inner = milliseconds_now() - inner;
	CHECK_OK(cuEventRecord(end_event, stream));
	outer = milliseconds_now() - outer;
	CHECK_OK(cuStreamWaitEvent(NULL, end_event, 0));
	CHECK_OK(cuEventElapsedTime(&milliseconds, start_event, end_event));
	CHECK(milliseconds >= inner - 0.001 && milliseconds <= outer + 0.001); // however long the machine took
	CHECK_OK(cuStreamSynchronize(stream));
	CHECK_OK(cuStreamQuery((void *)1)); // the reserved handles
	CHECK_OK(cuStreamQuery((void *)2));
	CHECK_OK(cuStreamDestroy_v2(stream));
	CHECK_EQ(cuStreamQuery(stream), CU_INVALID_HANDLE);
	CHECK_OK(cuEventDestroy_v2(start_event));
	CHECK_EQ(cuEventDestroy_v2(start_event), CU_INVALID_HANDLE);
	CHECK_OK(cuCtxDestroy_v2(context));
}

int main(void)
{
	setenv("NULLCUDA_SHARED", "none", 1);
	setenv("NULLCUDA_DEVICES", "2", 1);
	setenv("NULLCUDA_MEM", "1G", 1);
	setenv("NULLCUDA_CONTEXT", "100M", 1);
	CHECK_OK(cuInit(0));
	test_primary();
	test_stack();
	test_destroy_frees_what_it_owns();
	test_last_context_trims();
	test_threads_have_own_stacks();
	test_two_devices();
	test_cost_can_exhaust_the_device();
	test_limits();
	test_streams_and_events();
	return check_done("driver_context");
}
