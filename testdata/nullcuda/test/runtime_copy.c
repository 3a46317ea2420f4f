// Copies and fills move the bytes they say, and no others.
#include "rt.h"

enum { WIDTH = 48, HEIGHT = 6, DEPTH = 3, N = WIDTH * HEIGHT * DEPTH };

static unsigned char source[N], back[N];

static void prepare(void)
{
	for (int i = 0; i < N; i++)
		source[i] = (unsigned char)(i * 7 + 1);
	memset(back, 0, sizeof back);
}

static void test_linear(void)
{
	void *a, *b, *stream;
	CHECK_OK(cudaMalloc(&a, N));
	CHECK_OK(cudaMalloc(&b, N));
	CHECK_OK(cudaStreamCreate(&stream));
	prepare();
	CHECK_OK(cudaMemcpy(a, source, N, RT_HOST_TO_DEVICE));
	CHECK_OK(cudaMemcpyAsync(b, a, N, RT_DEVICE_TO_DEVICE, stream));
	CHECK_OK(cudaStreamSynchronize(stream));
	CHECK_OK(cudaMemcpy_ptds(back, b, N, RT_DEVICE_TO_HOST));
	CHECK(!memcmp(source, back, N));
	prepare();
	CHECK_OK(cudaMemset(b, 0, N));
	CHECK_OK(cudaMemcpyAsync_ptsz(b, source, N / 2, RT_COPY_DEFAULT, NULL));
	CHECK_OK(cudaMemcpy(back, b, N, RT_COPY_DEFAULT));
	CHECK(!memcmp(source, back, N / 2) && !back[N / 2] && !back[N - 1]);
	CHECK_EQ(cudaMemcpy(a, source, N, 9), RT_INVALID_MEMCPY_DIRECTION);
	CHECK_OK(cudaMemcpy(NULL, NULL, 0, RT_HOST_TO_DEVICE));
	CHECK_OK(cudaMemset(a, 0x5a, N));
	CHECK_OK(cudaMemcpyPeer(b, 0, a, 0, N));
	CHECK_OK(cudaMemcpy(back, b, N, RT_DEVICE_TO_HOST));
	CHECK(back[0] == 0x5a && back[N - 1] == 0x5a);
	CHECK_OK(cudaStreamDestroy(stream));
	CHECK_OK(cudaFree(a));
	CHECK_OK(cudaFree(b));
}

static void test_pitched(void)
{
	void *device;
	size_t pitch;
	CHECK_OK(cudaMallocPitch(&device, &pitch, WIDTH, HEIGHT));
	prepare();
	CHECK_OK(cudaMemset(device, 0xee, pitch * HEIGHT));
	CHECK_OK(cudaMemcpy2D(device, pitch, source, WIDTH, WIDTH, HEIGHT, RT_HOST_TO_DEVICE));
	CHECK_OK(cudaMemcpy2D(back, WIDTH, device, pitch, WIDTH, HEIGHT, RT_DEVICE_TO_HOST));
	CHECK(!memcmp(source, back, WIDTH * HEIGHT));
	CHECK_OK(cudaMemcpy(back, (char *)device + WIDTH, 1, RT_DEVICE_TO_HOST));
	CHECK_EQ(back[0], 0xee); // beyond the row
	CHECK_OK(cudaMemset2D(device, pitch, 3, 4, HEIGHT));
	CHECK_OK(cudaMemcpy2D(back, WIDTH, device, pitch, WIDTH, HEIGHT, RT_DEVICE_TO_HOST));
	CHECK(back[0] == 3 && back[3] == 3 && back[4] == source[4] && back[WIDTH] == 3);
	CHECK_OK(cudaFree(device));
}

static void test_solid(void)
{
	rt_pitched block;
	CHECK_OK(cudaMalloc3D(&block, (rt_extent){WIDTH, HEIGHT, DEPTH}));
	prepare();
	rt_copy3d copy = {
		.src_ptr = {source, WIDTH, WIDTH, HEIGHT}, .dst_ptr = block,
		.extent = {WIDTH, HEIGHT, DEPTH}, .kind = RT_HOST_TO_DEVICE,
	};
	CHECK_OK(cudaMemcpy3D(&copy));
	copy.dst_ptr = (rt_pitched){back, WIDTH, WIDTH, HEIGHT};
	copy.src_ptr = block;
	copy.kind = RT_DEVICE_TO_HOST;
	CHECK_OK(cudaMemcpy3D(&copy));
	CHECK(!memcmp(source, back, N));
	CHECK_OK(cudaMemset3D(block, 9, (rt_extent){2, 2, DEPTH}));
	CHECK_OK(cudaMemcpy3D(&copy));
	int nines = 0;
	for (int i = 0; i < N; i++)
		nines += back[i] == 9 && source[i] != 9;
	CHECK_EQ(nines, 2 * 2 * DEPTH);
	copy.src_ptr.ptr = NULL;
	CHECK_EQ(cudaMemcpy3D(&copy), RT_INVALID_VALUE);
	CHECK_OK(cudaFree(block.ptr));
}

static void test_array(void)
{
	rt_channel floats = cudaCreateChannelDesc(32, 0, 0, 0, 2);
	void *flat, *solid;
	CHECK_OK(cudaMallocArray(&flat, &floats, WIDTH / 4, HEIGHT, 0));
	prepare();
	CHECK_OK(cudaMemcpy2DToArray(flat, 0, 0, source, WIDTH, WIDTH, HEIGHT, RT_HOST_TO_DEVICE));
	CHECK_OK(cudaMemcpy2DFromArray(back, WIDTH, flat, 0, 0, WIDTH, HEIGHT, RT_DEVICE_TO_HOST));
	CHECK(!memcmp(source, back, WIDTH * HEIGHT));
	// A run that begins and ends inside rows.
	unsigned char run[WIDTH * 3];
	memset(run, 0x77, sizeof run);
	CHECK_OK(cudaMemcpyToArray(flat, 8, 1, run, WIDTH * 2 + 4, RT_HOST_TO_DEVICE));
	CHECK_OK(cudaMemcpy2DFromArray(back, WIDTH, flat, 0, 0, WIDTH, HEIGHT, RT_DEVICE_TO_HOST));
	int first = WIDTH + 8, last = first + WIDTH * 2 + 3, wrong = 0;
	for (int i = 0; i < WIDTH * HEIGHT; i++)
		wrong += back[i] != (i >= first && i <= last ? 0x77 : source[i]);
	CHECK_EQ(wrong, 0);
	memset(run, 0, sizeof run);
	CHECK_OK(cudaMemcpyFromArray(run, flat, 8, 1, WIDTH * 2 + 4, RT_DEVICE_TO_HOST));
	CHECK(run[0] == 0x77 && run[WIDTH * 2 + 3] == 0x77 && run[WIDTH * 2 + 4] == 0);
	CHECK_OK(cudaMalloc3DArray(&solid, &floats, (rt_extent){WIDTH / 4, HEIGHT, DEPTH}, 0));
	rt_copy3d copy = {
		.src_ptr = {source, WIDTH, WIDTH, HEIGHT}, .dst_array = solid,
		.extent = {WIDTH / 4, HEIGHT, DEPTH}, .kind = RT_HOST_TO_DEVICE, // elements, as an array takes part
	};
	CHECK_OK(cudaMemcpy3D(&copy));
	memset(back, 0, sizeof back);
	copy = (rt_copy3d){
		.src_array = solid, .dst_ptr = {back, WIDTH, WIDTH, HEIGHT},
		.extent = {WIDTH / 4, HEIGHT, DEPTH}, .kind = RT_DEVICE_TO_HOST,
	};
	CHECK_OK(cudaMemcpy3D(&copy));
	CHECK(!memcmp(source, back, N));
	CHECK_OK(cudaFreeArray(flat));
	CHECK_OK(cudaFreeArray(solid));
}

TEST_MAIN
{
	test_linear();
	test_pitched();
	test_solid();
	test_array();
	return check_done(TEST_NAME("runtime_copy"));
}
