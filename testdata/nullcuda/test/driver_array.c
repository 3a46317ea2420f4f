// Arrays: what they cost, and copies between arrays, host and linear memory.
#include "cu.h"

static void test_costs(void)
{
	void *array, *mipmap, *level;
	cu_array_desc got;
	long long before = used_now();
	const cu_array_desc flat = {100, 50, 0x20, 4}; // four floats: 16 bytes an element
	CHECK_OK(cuArrayCreate_v2(&array, &flat));
	CHECK_EQ(used_now() - before, 80384); // 80000 in units of 512
	CHECK_OK(cuArrayGetDescriptor_v2(&got, array));
	CHECK(got.width == 100 && got.height == 50 && got.channels == 4);
	CHECK_OK(cuArrayDestroy(array));
	CHECK_EQ(cuArrayDestroy(array), CU_INVALID_HANDLE);
	const cu_array3d_desc volume = {8, 8, 8, 0x01, 1, 0};
	CHECK_OK(cuMipmappedArrayCreate(&mipmap, &volume, 3)); // 512 + 64 + 8 bytes
	CHECK_EQ(used_now() - before, 1024);
	CHECK_OK(cuMipmappedArrayGetLevel(&level, mipmap, 2));
	CHECK_EQ(cuMipmappedArrayGetLevel(&level, mipmap, 3), CU_INVALID_VALUE);
	CHECK_EQ(cuArrayDestroy(level), CU_INVALID_HANDLE); // not on its own
	CHECK_OK(cuMipmappedArrayDestroy(mipmap));
	CHECK_EQ(used_now(), before);
	const cu_array_desc bad_channels = {1, 1, 0x20, 3}, empty = {0, 1, 0x20, 1}, huge = {1 << 21, 1, 0x20, 1};
	CHECK_EQ(cuArrayCreate_v2(&array, &bad_channels), CU_INVALID_VALUE);
	CHECK_EQ(cuArrayCreate_v2(&array, &empty), CU_INVALID_VALUE);
	CHECK_EQ(cuArrayCreate_v2(&array, &huge), CU_INVALID_VALUE);
}

static void test_linear_copies(void)
{
	void *array;
	char in[64] = "into the array and out of it", out[64] = "";
	const cu_array_desc line = {64, 0, 0x01, 1};
	CHECK_OK(cuArrayCreate_v2(&array, &line));
	CHECK_OK(cuMemcpyHtoA_v2(array, 0, in, 64));
	CHECK_OK(cuMemcpyAtoH_v2(out, array, 5, 59));
	CHECK(strcmp(out, in + 5) == 0);
	CHECK_EQ(cuMemcpyHtoA_v2(array, 1, in, 64), CU_INVALID_VALUE);
	CHECK_OK(cuArrayDestroy(array));
	CHECK_EQ(cuMemcpyHtoA_v2(array, 0, in, 64), CU_INVALID_HANDLE);
}

// A box of 3x3x3 bytes goes from the middle of a volume on the host, through an
// array, into pitched device memory.
static void test_volume_copies(void)
{
	enum { N = 6, BOX = 3 };
	char in[N][N][N], out[BOX][BOX][BOX];
	void *array;
	cu_ptr linear;
	const cu_array3d_desc desc = {N, N, N, 0x01, 1, 0};
	for (int z = 0; z < N; z++)
		for (int y = 0; y < N; y++)
			for (int x = 0; x < N; x++)
				in[z][y][x] = (char)(36 * z + 6 * y + x);
	CHECK_OK(cuArray3DCreate_v2(&array, &desc));
	CHECK_OK(cuMemAlloc_v2(&linear, 16 * BOX * BOX));
	cu_copy3d copy = {.src_type = CU_MEMORY_HOST, .src_host = in, .src_pitch = N, .src_height = N,
	                  .dst_type = CU_MEMORY_ARRAY, .dst_array = array, .width = N, .height = N, .depth = N};
	CHECK_OK(cuMemcpy3D_v2(&copy));
	copy = (cu_copy3d){.src_x = 1, .src_y = 2, .src_z = 3, .src_type = CU_MEMORY_ARRAY, .src_array = array,
	                   .dst_type = CU_MEMORY_DEVICE, .dst_device = linear, .dst_pitch = 16, .dst_height = BOX,
	                   .width = BOX, .height = BOX, .depth = BOX};
	CHECK_OK(cuMemcpy3D_v2(&copy));
	copy = (cu_copy3d){.src_type = CU_MEMORY_DEVICE, .src_device = linear, .src_pitch = 16, .src_height = BOX,
	                   .dst_type = CU_MEMORY_HOST, .dst_host = out, .dst_pitch = BOX, .dst_height = BOX,
	                   .width = BOX, .height = BOX, .depth = BOX};
	CHECK_OK(cuMemcpy3D_v2(&copy));
	int wrong = 0;
	for (int z = 0; z < BOX; z++)
		for (int y = 0; y < BOX; y++)
			for (int x = 0; x < BOX; x++)
				wrong += out[z][y][x] != in[z + 3][y + 2][x + 1];
	CHECK_EQ(wrong, 0);
	copy.src_pitch = 2; // rows would overlap
	CHECK_EQ(cuMemcpy3D_v2(&copy), CU_INVALID_VALUE);
	copy.src_pitch = 16, copy.depth = 1000;
	CHECK_EQ(cuMemcpy3D_v2(&copy), CU_INVALID_VALUE);
	copy.depth = SIZE_MAX;
	CHECK_EQ(cuMemcpy3D_v2(&copy), CU_INVALID_VALUE);
	CHECK_OK(cuArrayDestroy(array));
	CHECK_OK(cuMemFree_v2(linear));
}

int main(void)
{
	start();
	test_costs();
	test_linear_copies();
	test_volume_copies();
	return check_done("driver_array");
}
