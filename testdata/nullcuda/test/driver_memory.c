// Linear memory: every way to get it, what it costs, and that it is memory.
#include "cu.h"

static void test_device_memory(void)
{
	cu_ptr a, b, base;
	size_t bytes;
	long long before = used_now();
	CHECK_OK(cuMemAlloc_v2(&a, 1));
	CHECK_EQ(used_now() - before, 512);
	CHECK_OK(cuMemAlloc_v2(&b, 513));
	CHECK_EQ(used_now() - before, 512 + 1024);
	CHECK_EQ(a % 512, 0);
	CHECK_EQ(b % 512, 0);
	CHECK_OK(cuMemGetAddressRange_v2(&base, &bytes, b + 500));
	CHECK_EQ(base, b);
	CHECK_EQ(bytes, 513);
	CHECK_EQ(cuMemGetAddressRange_v2(&base, &bytes, 64), CU_NOT_FOUND);
	CHECK_EQ(cuMemAlloc_v2(&base, 0), CU_INVALID_VALUE);
	CHECK_EQ(cuMemAlloc_v2(NULL, 1), CU_INVALID_VALUE);
	CHECK_EQ(cuMemAlloc_v2(&base, SIZE_MAX), CU_OUT_OF_MEMORY);
	CHECK_EQ(cuMemAlloc_v2(&base, SIZE_MAX - 100), CU_OUT_OF_MEMORY);
	CHECK_EQ(cuMemFree_v2(a + 256), CU_INVALID_VALUE);
	CHECK_OK(cuMemFree_v2(a));
	CHECK_EQ(cuMemFree_v2(a), CU_INVALID_VALUE);
	CHECK_OK(cuMemFree_v2(b));
	CHECK_OK(cuMemFree_v2(0));
	CHECK_EQ(used_now(), before);
}

static void test_pitched_memory(void)
{
	cu_ptr a;
	size_t pitch;
	long long before = used_now();
	CHECK_OK(cuMemAllocPitch_v2(&a, &pitch, 1000, 10, 4));
	CHECK_EQ(pitch, 1024);
	CHECK_EQ(used_now() - before, 10240);
	CHECK_EQ(cuMemAllocPitch_v2(&a, &pitch, 1000, 10, 3), CU_INVALID_VALUE);
	CHECK_EQ(cuMemAllocPitch_v2(&a, &pitch, SIZE_MAX, SIZE_MAX, 4), CU_OUT_OF_MEMORY);
	CHECK_OK(cuMemFree_v2(a));
	CHECK_EQ(used_now(), before);
}

static void test_memory_that_takes_no_device_bytes(void)
{
	cu_ptr managed, device_address;
	void *pinned;
	unsigned flags;
	static char own[10000];
	long long before = used_now();
	CHECK_OK(cuMemAllocManaged(&managed, 1 << 20, 1));
	*(int *)managed = 42; // the host may touch managed memory
	CHECK_EQ(cuMemAllocManaged(&managed, 1 << 20, 7), CU_INVALID_VALUE);
	CHECK_OK(cuMemFree_v2(managed));
	CHECK_OK(cuMemHostAlloc(&pinned, 5000, 1));
	memset(pinned, 1, 5000);
	CHECK_OK(cuMemHostGetFlags(&flags, pinned));
	CHECK_EQ(flags & 1, 1);
	CHECK_OK(cuMemHostGetDevicePointer_v2(&device_address, (char *)pinned + 100, 0));
	CHECK_EQ(device_address, (uintptr_t)pinned + 100);
	CHECK_EQ(cuMemFree_v2((uintptr_t)pinned), CU_INVALID_VALUE);
	CHECK_OK(cuMemFreeHost(pinned));
	CHECK_EQ(cuMemFreeHost(pinned), CU_INVALID_VALUE);
	CHECK_OK(cuMemHostRegister_v2(own + 3, 5000, 0));
	CHECK_EQ(cuMemHostRegister_v2(own + 4000, 100, 0), CU_HOST_MEMORY_ALREADY_REGISTERED);
	CHECK_EQ(cuMemHostRegister_v2(own, 100, 0), CU_HOST_MEMORY_ALREADY_REGISTERED);
	CHECK_EQ(cuMemFreeHost(own + 3), CU_INVALID_VALUE);
	CHECK_EQ(cuMemHostUnregister(own + 4), CU_HOST_MEMORY_NOT_REGISTERED);
	CHECK_OK(cuMemHostUnregister(own + 3));
	CHECK_EQ(cuMemHostUnregister(own + 3), CU_HOST_MEMORY_NOT_REGISTERED);
	own[3] = 7; // still ours
	CHECK_EQ(used_now(), before);
}

static void test_copies(void)
{
	char text[] = "there and back again", out[64] = "";
	cu_ptr a, b;
	CHECK_OK(cuMemAlloc_v2(&a, 4096));
	CHECK_OK(cuMemAlloc_v2(&b, 4096));
	CHECK_OK(cuMemcpyHtoD_v2(a + 5, text, sizeof text));
	CHECK_OK(cuMemcpyDtoD_v2(b, a + 5, sizeof text));
	CHECK_OK(cuMemcpyDtoDAsync_v2(b + 100, b, sizeof text, NULL));
	CHECK_OK(cuMemcpy((uintptr_t)out, b + 100, sizeof text));
	CHECK(strcmp(out, text) == 0);
	CHECK_EQ(cuMemcpyHtoD_v2(a + 4000, text, 200), CU_INVALID_VALUE); // past the end
	CHECK_EQ(cuMemcpyDtoH_v2(out, 4096, 8), CU_INVALID_VALUE);        // no such memory
	CHECK_EQ(cuMemcpyHtoD_v2(a, NULL, 8), CU_INVALID_VALUE);
	cu_ptr dsts[] = {a, a + 1000}, srcs[] = {b, b + 100};
	size_t sizes[] = {sizeof text, sizeof text};
	CHECK_OK(cuMemcpyBatchAsync_v2(dsts, srcs, sizes, 2, NULL, NULL, 0, NULL));
	CHECK_OK(cuMemcpyDtoH_v2(out, a + 1000, sizeof text));
	CHECK(strcmp(out, text) == 0);
	CHECK_OK(cuMemFree_v2(a));
	CHECK_EQ(cuMemcpyDtoH_v2(out, a, 8), CU_INVALID_VALUE); // freed
	CHECK_OK(cuMemFree_v2(b));
}

static void test_pitched_copy(void)
{
	enum { WIDTH = 7, HEIGHT = 5 };
	char in[HEIGHT][WIDTH], out[HEIGHT][16] = {{0}};
	cu_ptr a;
	size_t pitch;
	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH; x++)
			in[y][x] = (char)(10 * y + x);
	CHECK_OK(cuMemAllocPitch_v2(&a, &pitch, WIDTH, HEIGHT, 4));
	const cu_copy2d up = {.src_type = CU_MEMORY_HOST, .src_host = in, .src_pitch = WIDTH, .dst_type = CU_MEMORY_DEVICE,
	                      .dst_device = a, .dst_pitch = pitch, .width = WIDTH, .height = HEIGHT};
	CHECK_OK(cuMemcpy2D_v2(&up));
	// Down again, from the second column and row, into a wider host array.
	const cu_copy2d down = {.src_x = 1,
		.src_y = 1, .src_type = CU_MEMORY_DEVICE, .src_device = a, .src_pitch = pitch, .dst_type = CU_MEMORY_HOST,
		.dst_host = out, .dst_pitch = 16, .width = WIDTH - 1, .height = HEIGHT - 1};
	CHECK_OK(cuMemcpy2D_v2(&down));
	CHECK_EQ(out[0][0], 11);
	CHECK_EQ(out[3][5], 46);
	CHECK_EQ(out[3][6], 0);
	cu_copy2d beyond = down;
	beyond.height = HEIGHT + 1000;
	CHECK_EQ(cuMemcpy2D_v2(&beyond), CU_INVALID_VALUE);
	CHECK_OK(cuMemFree_v2(a));
}

static void test_fills(void)
{
	cu_ptr a;
	unsigned char bytes[64];
	CHECK_OK(cuMemAlloc_v2(&a, 1 << 20));
	CHECK_OK(cuMemsetD8_v2(a, 0xab, 64));
	CHECK_OK(cuMemsetD16_v2(a + 16, 0x1234, 4));
	CHECK_OK(cuMemsetD32_v2(a + 32, 0xdeadbeef, 2));
	CHECK_OK(cuMemsetD2D8_v2(a + 48, 8, 1, 2, 2));
	CHECK_OK(cuMemcpyDtoH_v2(bytes, a, 64));
	CHECK_EQ(bytes[15], 0xab);
	CHECK_EQ(*(uint16_t *)(bytes + 22), 0x1234);
	CHECK_EQ(bytes[24], 0xab);
	CHECK_EQ(*(uint32_t *)(bytes + 36), 0xdeadbeef);
	CHECK_EQ(bytes[49], 1);
	CHECK_EQ(bytes[50], 0xab);
	CHECK_EQ(bytes[57], 1);
	CHECK_EQ(cuMemsetD32_v2(a + 2, 0, 1), CU_INVALID_VALUE); // misaligned
	CHECK_EQ(cuMemsetD8_v2(a, 0, (1 << 20) + 512), CU_INVALID_VALUE);
	CHECK_OK(cuMemFree_v2(a));
}

// Clearing memory that nobody touched must not touch it, and clearing touched
// memory must leave zeros whether or not the range begins on a page.
static void test_clearing_is_lazy(void)
{
	cu_ptr a;
	unsigned char ends[4];
	const size_t bytes = 4 * GIB;
	CHECK_OK(cuMemAlloc_v2(&a, bytes));
	long before = resident_pages();
	CHECK_OK(cuMemsetD8_v2(a, 0, bytes));
	CHECK(resident_pages() - before < 1000);
	CHECK_OK(cuMemsetD8_v2(a, 0xff, MIB));
	CHECK_OK(cuMemsetD8_v2(a + 1, 0, MIB - 2));
	CHECK_OK(cuMemcpyDtoH_v2(ends, a, 2));
	CHECK_OK(cuMemcpyDtoH_v2(ends + 2, a + MIB - 2, 2));
	CHECK(ends[0] == 0xff && ends[1] == 0 && ends[2] == 0 && ends[3] == 0xff);
	unsigned char *middle = malloc(MIB);
	CHECK_OK(cuMemcpyDtoH_v2(middle, a, MIB));
	size_t nonzero = 0;
	for (size_t i = 0; i < MIB; i++)
		nonzero += middle[i] != 0;
	CHECK_EQ(nonzero, 2);
	free(middle);
	CHECK_OK(cuMemFree_v2(a));
}

static void test_pointer_attributes(void)
{
	enum { TYPE = 2, HOST_POINTER = 4, BUFFER_ID = 7, MANAGED = 8, ORDINAL = 9, START = 11, SIZE = 12 };
	cu_ptr device, managed, start_address;
	void *pinned, *host_pointer;
	unsigned type;
	size_t size;
	uint64_t id1, id2;
	bool is_managed = false;
	int ordinal, local = 0;
	CHECK_OK(cuMemAlloc_v2(&device, 5000));
	CHECK_OK(cuMemAllocManaged(&managed, 5000, 1));
	CHECK_OK(cuMemHostAlloc(&pinned, 5000, 0));
	CHECK_OK(cuPointerGetAttribute(&type, TYPE, device + 4999));
	CHECK_EQ(type, CU_MEMORY_DEVICE);
	CHECK_OK(cuPointerGetAttribute(&type, TYPE, (uintptr_t)pinned));
	CHECK_EQ(type, CU_MEMORY_HOST);
	CHECK_OK(cuPointerGetAttribute(&is_managed, MANAGED, managed));
	CHECK(is_managed);
	CHECK_OK(cuPointerGetAttribute(&start_address, START, device + 77));
	CHECK_EQ(start_address, device);
	CHECK_OK(cuPointerGetAttribute(&size, SIZE, device + 77));
	CHECK_EQ(size, 5000);
	CHECK_OK(cuPointerGetAttribute(&id1, BUFFER_ID, device));
	CHECK_OK(cuPointerGetAttribute(&id2, BUFFER_ID, managed));
	CHECK(id1 != id2);
	CHECK_OK(cuPointerGetAttribute(&host_pointer, HOST_POINTER, (uintptr_t)pinned + 3));
	CHECK(host_pointer == (char *)pinned + 3);
	CHECK_EQ(cuPointerGetAttribute(&host_pointer, HOST_POINTER, device), CU_INVALID_VALUE);
	CHECK_EQ(cuPointerGetAttribute(&type, TYPE, (uintptr_t)&local), CU_INVALID_VALUE);
	// The plural form answers for any address.
	int attributes[] = {TYPE, ORDINAL};
	void *data[] = {&type, &ordinal};
	CHECK_OK(cuPointerGetAttributes(2, attributes, data, (uintptr_t)&local));
	CHECK_EQ(type, 0);
	CHECK_EQ(ordinal, -2);
	CHECK_OK(cuPointerGetAttributes(2, attributes, data, device));
	CHECK_EQ(ordinal, 0);
	CHECK_OK(cuMemFree_v2(device));
	CHECK_OK(cuMemFree_v2(managed));
	CHECK_OK(cuMemFreeHost(pinned));
}

// Frees in an order unlike that of the allocations, to exercise the registry.
static void test_many_allocations(void)
{
	enum { COUNT = 2000 };
	static cu_ptr addresses[COUNT];
	long long before = used_now(), expected = 0;
	for (int i = 0; i < COUNT; i++) {
		size_t bytes = (size_t)(i * 37 % 5000 + 1);
		CHECK_OK(cuMemAlloc_v2(&addresses[i], bytes));
		expected += (long long)((bytes + 511) / 512 * 512);
	}
	CHECK_EQ(used_now() - before, expected);
	for (int i = 0; i < COUNT; i++) {
		size_t bytes = 0;
		CHECK_OK(cuMemGetAddressRange_v2(NULL, &bytes, addresses[i]));
		CHECK_EQ(bytes, i * 37 % 5000 + 1);
	}
	for (int i = 0; i < COUNT; i++)
		CHECK_OK(cuMemFree_v2(addresses[i * 777 % COUNT]));
	CHECK_EQ(used_now(), before);
}

int main(void)
{
	cu_ptr a;
	CHECK_EQ(cuMemAlloc_v2(&a, 1), CU_NOT_INITIALIZED);
	start();
	test_device_memory();
	test_pitched_memory();
	test_memory_that_takes_no_device_bytes();
	test_copies();
	test_pitched_copy();
	test_fills();
	test_clearing_is_lazy();
	test_pointer_attributes();
	test_many_allocations();
	CHECK_EQ(cuMemAlloc(&a, 1), CU_NOT_SUPPORTED); // the 32-bit entry point
	CHECK_OK(cuCtxSetCurrent(NULL));
	CHECK_EQ(cuMemAlloc_v2(&a, 1), CU_INVALID_CONTEXT);
	return check_done("driver_memory");
}
