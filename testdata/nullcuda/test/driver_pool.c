// Asynchronous pools: attributes are true, the reserve is what the device pays.
#include "cu.h"

enum { THRESHOLD = 4, RESERVED = 5, RESERVED_HIGH = 6, USED = 7, USED_HIGH = 8 };

static uint64_t get(void *pool, int attribute)
{
	uint64_t value = 0;
	CHECK_OK(cuMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

static int set(void *pool, int attribute, uint64_t value) { return cuMemPoolSetAttribute(pool, attribute, &value); }

static void test_default_pool(void)
{
	void *pool, *current;
	cu_ptr a, b;
	long long before = used_now();
	CHECK_OK(cuDeviceGetDefaultMemPool(&pool, 0));
	CHECK_OK(cuDeviceGetMemPool(&current, 0));
	CHECK(pool == current);
	CHECK_OK(cuMemAllocAsync(&a, 1000, NULL));
	CHECK_OK(cuMemAllocAsync(&b, 1, NULL));
	CHECK_EQ(get(pool, USED), 1024 + 512);
	CHECK_EQ(get(pool, RESERVED), 32 * MIB);
	CHECK_EQ(used_now() - before, 32 * MIB);
	CHECK_OK(cuMemsetD8_v2(a, 1, 1000));
	CHECK_OK(cuMemFreeAsync(a, NULL));
	CHECK_EQ(cuMemFreeAsync(a, NULL), CU_INVALID_VALUE);
	CHECK_EQ(get(pool, USED), 512);
	CHECK_EQ(get(pool, USED_HIGH), 1536);
	CHECK_EQ(used_now() - before, 32 * MIB); // the reserve stays
	CHECK_OK(cuMemFree_v2(b));               // the synchronous free works too
	CHECK_EQ(get(pool, USED), 0);
	CHECK_OK(cuCtxSynchronize()); // the threshold is 0: all goes back
	CHECK_EQ(get(pool, RESERVED), 0);
	CHECK_EQ(get(pool, RESERVED_HIGH), 32 * MIB);
	CHECK_EQ(used_now(), before);
	CHECK_EQ(cuMemPoolDestroy(pool), CU_INVALID_VALUE);
}

static void test_high_water_marks(void)
{
	void *pool;
	cu_ptr a, b;
	CHECK_OK(cuDeviceGetDefaultMemPool(&pool, 0));
	CHECK_OK(cuMemAllocAsync(&a, 10 * MIB, NULL));
	CHECK_OK(cuMemAllocAsync(&b, 20 * MIB, NULL));
	CHECK_OK(cuMemFreeAsync(b, NULL));
	CHECK_EQ(get(pool, USED_HIGH), 30 * MIB);
	CHECK_EQ(set(pool, USED_HIGH, 5), CU_INVALID_VALUE);
	CHECK_EQ(set(pool, USED, 0), CU_INVALID_VALUE);
	CHECK_OK(set(pool, USED_HIGH, 0));
	CHECK_OK(set(pool, RESERVED_HIGH, 0));
	CHECK_EQ(get(pool, USED_HIGH), 10 * MIB); // begins again at what is there
	CHECK_OK(cuMemFreeAsync(a, NULL));
	CHECK_EQ(get(pool, USED_HIGH), 10 * MIB);
	CHECK_OK(cuStreamSynchronize(NULL));
}

static void test_threshold_and_trim(void)
{
	void *pool;
	cu_ptr a[4];
	long long before = used_now();
	CHECK_OK(cuDeviceGetDefaultMemPool(&pool, 0));
	CHECK_OK(set(pool, THRESHOLD, 64 * MIB));
	CHECK_EQ(get(pool, THRESHOLD), 64 * MIB);
	for (int i = 0; i < 4; i++)
		CHECK_OK(cuMemAllocAsync(&a[i], 32 * MIB, NULL));
	CHECK_EQ(get(pool, RESERVED), 128 * MIB);
	CHECK_OK(cuMemPoolTrimTo(pool, 0)); // everything is in use
	CHECK_EQ(get(pool, RESERVED), 128 * MIB);
	for (int i = 0; i < 3; i++)
		CHECK_OK(cuMemFreeAsync(a[i], NULL));
	CHECK_EQ(used_now() - before, 128 * MIB);
	CHECK_OK(cuCtxSynchronize());
	CHECK_EQ(get(pool, RESERVED), 64 * MIB);
	CHECK_OK(cuMemPoolTrimTo(pool, 0));
	CHECK_EQ(get(pool, RESERVED), 32 * MIB); // what is in use stays
	CHECK_OK(cuMemFreeAsync(a[3], NULL));
	CHECK_OK(set(pool, THRESHOLD, 0));
	CHECK_OK(cuCtxSynchronize());
	CHECK_EQ(used_now(), before);
}

static void test_own_pool(void)
{
	const cu_pool_props props = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}};
	void *pool, *found;
	cu_ptr a, b;
	long long before = used_now();
	CHECK_OK(cuMemPoolCreate(&pool, &props));
	CHECK_OK(cuMemAllocFromPoolAsync(&a, 100 * MIB, pool, NULL));
	CHECK_EQ(used_now() - before, 128 * MIB);
	CHECK_OK(cuPointerGetAttribute(&found, 17, a + 5));
	CHECK(found == pool);
	CHECK_OK(cuDeviceSetMemPool(0, pool));
	CHECK_OK(cuMemAllocAsync(&b, 1, NULL));
	CHECK_EQ(get(pool, USED), 100 * MIB + 512);
	CHECK_OK(cuMemFreeAsync(b, NULL));
	// Destroyed with a block outstanding: the handle is gone, the memory is not.
	CHECK_OK(cuMemPoolDestroy(pool));
	CHECK_EQ(cuMemPoolDestroy(pool), CU_INVALID_VALUE);
	CHECK_EQ(cuMemAllocFromPoolAsync(&b, 1, pool, NULL), CU_INVALID_VALUE);
	CHECK_OK(cuDeviceGetMemPool(&found, 0));
	CHECK(found != pool);
	CHECK_EQ(used_now() - before, 128 * MIB);
	CHECK_OK(cuMemsetD8_v2(a, 3, 100 * MIB));
	CHECK_OK(cuMemFreeAsync(a, NULL));
	CHECK_EQ(used_now(), before);
	const cu_pool_props limited = {
		.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}, .max_size = 4 * MIB};
	CHECK_OK(cuMemPoolCreate(&pool, &limited));
	CHECK_OK(cuMemAllocFromPoolAsync(&a, 3 * MIB, pool, NULL));
	CHECK_EQ(cuMemAllocFromPoolAsync(&b, 3 * MIB, pool, NULL), CU_OUT_OF_MEMORY);
	CHECK_OK(cuMemFreeAsync(a, NULL));
	CHECK_OK(cuMemPoolDestroy(pool));
	CHECK_EQ(used_now(), before);
}

// Holes join: after freeing in any order, one block as large as all fits again.
static void test_blocks_are_reused(void)
{
	enum { COUNT = 64 };
	cu_ptr a[COUNT], whole;
	void *pool;
	CHECK_OK(cuDeviceGetDefaultMemPool(&pool, 0));
	for (int i = 0; i < COUNT; i++)
		CHECK_OK(cuMemAllocAsync(&a[i], 512 * KIB, NULL));
	for (int i = 0; i < COUNT; i++)
		for (int j = 0; j < i; j++)
			CHECK(a[i] + 512 * KIB <= a[j] || a[j] + 512 * KIB <= a[i]);
	CHECK_EQ(get(pool, RESERVED), 32 * MIB);
	for (int i = 0; i < COUNT; i++)
		CHECK_OK(cuMemFreeAsync(a[i * 37 % COUNT], NULL));
	CHECK_OK(cuMemAllocAsync(&whole, 32 * MIB, NULL));
	CHECK_EQ(get(pool, RESERVED), 32 * MIB);
	CHECK_OK(cuMemFreeAsync(whole, NULL));
	CHECK_OK(cuCtxSynchronize());
}

static const cu_pool_props shareable = {
	.type = CU_ALLOCATION_PINNED, .handle_types = CU_HANDLE_FD, .location = {CU_LOCATION_DEVICE, 0}};

// Pools by location, as CUDA 13 asks for them.
static void test_pools_by_location(void)
{
	cu_location device = {CU_LOCATION_DEVICE, 0}, host = {CU_LOCATION_HOST, 0}, beyond = {CU_LOCATION_DEVICE, 7};
	void *pool, *found;
	cu_ptr a;
	CHECK_OK(cuMemGetDefaultMemPool(&found, &device, CU_ALLOCATION_PINNED));
	CHECK_OK(cuDeviceGetDefaultMemPool(&pool, 0));
	CHECK(found == pool);
	CHECK_EQ(cuMemGetDefaultMemPool(&found, &host, CU_ALLOCATION_PINNED), CU_NOT_SUPPORTED);
	CHECK_EQ(cuMemGetDefaultMemPool(&found, &device, CU_ALLOCATION_MANAGED), CU_NOT_SUPPORTED);
	CHECK_EQ(cuMemGetDefaultMemPool(&found, &beyond, CU_ALLOCATION_PINNED), CU_INVALID_DEVICE);
	CHECK_OK(cuMemPoolCreate(&pool, &shareable));
	CHECK_OK(cuMemSetMemPool(&device, CU_ALLOCATION_PINNED, pool));
	CHECK_OK(cuMemGetMemPool(&found, &device, CU_ALLOCATION_PINNED));
	CHECK(found == pool);
	CHECK_OK(cuMemAllocAsync(&a, MIB, NULL));
	CHECK_EQ(get(pool, USED), MIB);
	CHECK_OK(cuMemFreeAsync(a, NULL));
	CHECK_OK(cuMemPoolDestroy(pool));
	CHECK_OK(cuMemGetMemPool(&found, &device, CU_ALLOCATION_PINNED));
	CHECK(found != pool);
}

static void test_export_arguments(void)
{
	void *pool, *plain;
	int fd = -1;
	cu_ptr a;
	cu_pool_export out;
	const cu_pool_props fabric = {.type = CU_ALLOCATION_PINNED, .handle_types = 8, .location = {CU_LOCATION_DEVICE, 0}};
	CHECK_EQ(cuMemPoolCreate(&pool, &fabric), CU_NOT_SUPPORTED);
	CHECK_OK(cuDeviceGetDefaultMemPool(&plain, 0));
	CHECK_EQ(cuMemPoolExportToShareableHandle(&fd, plain, CU_HANDLE_FD, 0), CU_INVALID_VALUE);
	CHECK_OK(cuMemPoolCreate(&pool, &shareable));
	CHECK_EQ(get(pool, 10) & 0xffffffff, CU_HANDLE_FD);
	CHECK_EQ(cuMemPoolExportToShareableHandle(&fd, pool, 8, 0), CU_INVALID_VALUE);
	CHECK_EQ(cuMemPoolExportToShareableHandle(&fd, pool, CU_HANDLE_FD, 1), CU_INVALID_VALUE);
	CHECK_OK(cuMemAllocFromPoolAsync(&a, 100, pool, NULL));
	CHECK_EQ(cuMemPoolExportPointer(&out, a), CU_INVALID_VALUE); // the pool was not exported yet
	CHECK_OK(cuMemPoolExportToShareableHandle(&fd, pool, CU_HANDLE_FD, 0));
	CHECK_OK(cuMemPoolExportPointer(&out, a));
	CHECK_EQ(cuMemPoolExportPointer(&out, a + 1), CU_INVALID_VALUE);
	CHECK_OK(cuMemFreeAsync(a, NULL));
	CHECK_EQ(cuMemPoolExportPointer(&out, a), CU_INVALID_VALUE);
	CHECK_EQ(cuMemPoolImportFromShareableHandle(&plain, (void *)0, CU_HANDLE_FD, 0), CU_INVALID_VALUE); // not a pool's
	close(fd);
	CHECK_OK(cuMemPoolDestroy(pool));
}

int main(void)
{
	start();
	test_default_pool();
	test_high_water_marks();
	test_threshold_and_trim();
	test_own_pool();
	test_blocks_are_reused();
	test_pools_by_location();
	test_export_arguments();
	return check_done("driver_pool");
}
