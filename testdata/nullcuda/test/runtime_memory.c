// Every family of allocation: what it returns, what it costs, what errors leave.
#include "rt.h"

#include <stdint.h>
#include <unistd.h>

enum { MIB = 1 << 20, UNIT = 512 };

static void test_device(void)
{
	void *address = (void *)1;
	CHECK_OK(cudaFree(NULL));
	size_t before = rt_used();
	CHECK_OK(cudaMalloc(&address, 1000));
	CHECK_EQ(rt_used() - before, 2 * UNIT);
	CHECK_OK(cudaFree(address));
	CHECK_EQ(rt_used(), before);
	CHECK_OK(cudaMalloc(&address, 0));
	CHECK(address == NULL);
	CHECK_EQ(cudaMalloc(NULL, 10), RT_INVALID_VALUE);
}

static void test_errors(void)
{
	void *address = (void *)7;
	cudaGetLastError();
	CHECK_EQ(cudaMalloc(&address, (size_t)1 << 45), RT_OUT_OF_MEMORY);
	CHECK(address == (void *)7);
	CHECK_EQ(cudaPeekAtLastError(), RT_OUT_OF_MEMORY);
	CHECK_OK(cudaDeviceSynchronize()); // a success does not clear it
	CHECK_EQ(cudaGetLastError(), RT_OUT_OF_MEMORY);
	CHECK_EQ(cudaGetLastError(), RT_OK);
	CHECK_EQ(cudaFree(&address), RT_INVALID_VALUE);
	CHECK_OK(cudaMalloc(&address, 64));
	CHECK_OK(cudaFree(address));
	CHECK_EQ(cudaFree(address), RT_INVALID_VALUE); // twice
	CHECK_EQ(cudaFreeHost(&address), RT_INVALID_VALUE);
	CHECK_EQ(cudaGetLastError(), RT_INVALID_VALUE);
	CHECK(!strcmp(cudaGetErrorName(RT_OUT_OF_MEMORY), "cudaErrorMemoryAllocation"));
	CHECK(!strcmp(cudaGetErrorString(RT_OUT_OF_MEMORY), "out of memory"));
	CHECK(!strcmp(cudaGetErrorString(RT_OK), "no error"));
	CHECK(!strcmp(cudaGetErrorName(12345), "unrecognized error code"));
}

static void test_pitched(void)
{
	void *address;
	size_t pitch, before = rt_used();
	rt_pitched block;
	CHECK_OK(cudaMallocPitch(&address, &pitch, 100, 7));
	CHECK(pitch >= 100 && pitch % UNIT == 0);
	CHECK_EQ(rt_used() - before, 7 * pitch);
	CHECK_OK(cudaMalloc3D(&block, (rt_extent){100, 5, 3}));
	CHECK_EQ(block.xsize, 100);
	CHECK_EQ(block.ysize, 5);
	CHECK_EQ(rt_used() - before, 7 * pitch + 15 * block.pitch);
	CHECK_OK(cudaFree(address));
	CHECK_OK(cudaFree(block.ptr));
	CHECK_EQ(cudaMalloc3D(&block, (rt_extent){1, SIZE_MAX / 2, 3}), RT_OUT_OF_MEMORY);
	CHECK_EQ(rt_used(), before);
}

static void check_kind(void *address, int type, int device, bool on_host)
{
	rt_pointer_attributes found;
	memset(&found, 0xff, sizeof found);
	CHECK_OK(cudaPointerGetAttributes(&found, address));
	CHECK_EQ(found.type, type);
	CHECK_EQ(found.device, device);
	CHECK(!found.host_pointer == !on_host);
}

static void test_host(void)
{
	void *pinned, *managed, *device, *mapped;
	long page = sysconf(_SC_PAGESIZE);
	char *own = aligned_alloc((size_t)page, (size_t)page * 4);
	size_t before = rt_used();
	CHECK_OK(cudaMallocHost(&pinned, MIB));
	memset(pinned, 1, MIB);
	check_kind(pinned, RT_MEMORY_HOST, 0, true);
	CHECK_OK(cudaMallocManaged(&managed, MIB, 1));
	memset(managed, 1, MIB);
	check_kind(managed, RT_MEMORY_MANAGED, 0, true);
	CHECK_OK(cudaMalloc(&device, MIB));
	check_kind(device, RT_MEMORY_DEVICE, 0, false);
	check_kind((char *)device + 100, RT_MEMORY_DEVICE, 0, false);
	check_kind(own, RT_MEMORY_UNREGISTERED, RT_INVALID_DEVICE_ID, true);
	CHECK_OK(cudaHostRegister(own, (size_t)page * 4, 2));
	check_kind(own, RT_MEMORY_HOST, 0, true);
	CHECK_OK(cudaHostGetDevicePointer(&mapped, own, 0));
	CHECK_EQ(cudaHostRegister(own, (size_t)page, 0), 712);
	CHECK_OK(cudaHostUnregister(own));
	CHECK_EQ(cudaHostUnregister(own), 713);
	check_kind(own, RT_MEMORY_UNREGISTERED, RT_INVALID_DEVICE_ID, true);
	CHECK_EQ(rt_used() - before, MIB); // only the device allocation counts
	CHECK_OK(cudaFreeHost(pinned));
	CHECK_OK(cudaFree(managed));
	CHECK_OK(cudaFree(device));
	CHECK_OK(cudaHostAlloc(&pinned, 0, 0));
	CHECK(pinned == NULL);
	CHECK_OK(cudaFreeHost(NULL));
	CHECK_EQ(cudaMallocManaged(&managed, 0, 1), RT_INVALID_VALUE);
	free(own);
	cudaGetLastError();
}

static uint64_t pool_value(void *pool, int attribute)
{
	uint64_t value = 0;
	CHECK_OK(cudaMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

static void test_pool(void)
{
	enum { RELEASE_THRESHOLD = 4, RESERVED = 5, USED = 7, USED_HIGH = 8 };
	void *pool, *own, *stream, *first, *second, *third;
	const cu_pool_props props = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}};
	CHECK_OK(cudaStreamCreate(&stream));
	CHECK_OK(cudaDeviceGetDefaultMemPool(&pool, 0));
	CHECK_OK(cudaMallocAsync(&first, MIB, stream));
	CHECK_OK(cudaMallocAsync_ptsz(&second, MIB, NULL));
	CHECK_EQ(pool_value(pool, USED), 2 * MIB);
	CHECK(pool_value(pool, RESERVED) >= 2 * MIB);
	CHECK_OK(cudaFreeAsync(first, stream));
	CHECK_OK(cudaFreeAsync_ptsz(second, NULL));
	CHECK_EQ(pool_value(pool, USED), 0);
	CHECK_EQ(pool_value(pool, USED_HIGH), 2 * MIB);
	CHECK_OK(cudaStreamSynchronize(stream));
	CHECK_EQ(pool_value(pool, RESERVED), 0); // threshold 0: given back
	CHECK_OK(cudaMallocAsync(&third, 0, stream));
	CHECK(third == NULL);
	CHECK_OK(cudaMemPoolCreate(&own, &props));
	uint64_t keep = UINT64_MAX;
	CHECK_OK(cudaMemPoolSetAttribute(own, RELEASE_THRESHOLD, &keep));
	CHECK_OK(cudaMallocFromPoolAsync(&third, MIB, own, stream));
	CHECK_OK(cudaFree(third)); // also frees stream-ordered memory
	CHECK_OK(cudaDeviceSynchronize());
	CHECK(pool_value(own, RESERVED) >= MIB);
	CHECK_OK(cudaMemPoolTrimTo(own, 0));
	CHECK_EQ(pool_value(own, RESERVED), 0);
	CHECK_OK(cudaMemPoolDestroy(own));
	CHECK_OK(cudaStreamDestroy(stream));
}

static void test_array(void)
{
	rt_channel float4 = cudaCreateChannelDesc(32, 32, 32, 32, 2), found, three = {8, 8, 8, 0, 1};
	rt_extent extent;
	unsigned flags;
	void *array, *solid;
	size_t before = rt_used();
	CHECK_OK(cudaMallocArray(&array, &float4, 64, 32, 0));
	CHECK_EQ(rt_used() - before, 64 * 32 * 16);
	CHECK_OK(cudaArrayGetInfo(&found, &extent, &flags, array));
	CHECK(!memcmp(&found, &float4, sizeof found));
	CHECK(extent.width == 64 && extent.height == 32 && extent.depth == 0);
	CHECK_OK(cudaMalloc3DArray(&solid, &float4, (rt_extent){8, 8, 8}, 0));
	CHECK_OK(cudaFreeArray(array));
	CHECK_OK(cudaFreeArray(solid));
	CHECK_OK(cudaFreeArray(NULL));
	CHECK_EQ(rt_used(), before);
	CHECK_EQ(cudaMallocArray(&array, &three, 4, 4, 0), RT_INVALID_CHANNEL_DESCRIPTOR);
	cudaGetLastError();
}

TEST_MAIN
{
	test_device();
	test_errors();
	test_pitched();
	test_host();
	test_pool();
	test_array();
	return check_done(TEST_NAME("runtime_memory"));
}
