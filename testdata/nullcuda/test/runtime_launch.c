// Registration, launches, variables, streams, events and graphs.
#include "rt.h"

static char kernel_stub[64], other_stub[64], variable_stub[64], unknown_stub[64];
static void *managed_stub;
static const struct { int magic, version; const void *image, *unused; } fatbin = {0x466243b1, 1, "image", NULL};
static const rt_dim3 one = {1, 1, 1}, block = {128, 1, 1};

static void test_registration(void **handle)
{
	enum { MANY = 3000 };
	static char many[MANY][16];
	__cudaRegisterFunction(handle, kernel_stub, kernel_stub, "kernel", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFunction(handle, other_stub, other_stub, "other", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterVar(handle, variable_stub, variable_stub, "variable", 0, 100, 0, 0);
	__cudaRegisterManagedVar(handle, &managed_stub, NULL, "managed", 0, 4096, 0, 0);
	__cudaRegisterFatBinaryEnd(handle);
	CHECK(managed_stub != NULL);
	// Another module grows the table, then leaves.
	void **second = __cudaRegisterFatBinary((void *)&fatbin);
	for (int i = 0; i < MANY; i++)
		__cudaRegisterFunction(second, many[i], many[i], "many", -1, NULL, NULL, NULL, NULL, NULL);
	int failed = 0;
	for (int i = 0; i < MANY; i++)
		failed += cudaLaunchKernel(many[i], one, block, NULL, 0, NULL) != RT_OK;
	CHECK_EQ(failed, 0);
	__cudaUnregisterFatBinary(second);
	for (int i = 0; i < MANY; i++)
		failed += cudaLaunchKernel(many[i], one, block, NULL, 0, NULL) == RT_OK;
	CHECK_EQ(failed, 0);
	cudaGetLastError();
}

static void test_launch(void)
{
	rt_func_attributes attributes;
	int blocks;
	CHECK_OK(cudaLaunchKernel(kernel_stub, one, block, NULL, 0, NULL));
	CHECK_OK(cudaLaunchKernel_ptsz(kernel_stub, one, block, NULL, 0, NULL));
	CHECK_OK(cudaLaunchCooperativeKernel(other_stub, one, block, NULL, 0, NULL));
	const rt_launch_config config = {.grid = one, .block = block};
	CHECK_OK(cudaLaunchKernelExC(&config, kernel_stub, NULL));
	CHECK_EQ(cudaLaunchKernel(unknown_stub, one, block, NULL, 0, NULL), RT_INVALID_DEVICE_FUNCTION);
	CHECK_EQ(cudaGetLastError(), RT_INVALID_DEVICE_FUNCTION);
	CHECK_EQ(cudaLaunchKernel(NULL, one, block, NULL, 0, NULL), RT_INVALID_DEVICE_FUNCTION);
	CHECK_EQ(cudaLaunchKernel(kernel_stub, one, (rt_dim3){2048, 1, 1}, NULL, 0, NULL), RT_INVALID_CONFIGURATION);
	CHECK_EQ(cudaLaunchKernel(kernel_stub, (rt_dim3){0, 1, 1}, block, NULL, 0, NULL), RT_INVALID_CONFIGURATION);
	CHECK_EQ(cudaLaunchKernel(variable_stub, one, block, NULL, 0, NULL), RT_INVALID_DEVICE_FUNCTION);
	CHECK_OK(cudaFuncGetAttributes(&attributes, kernel_stub));
	CHECK_EQ(attributes.max_threads, 1024);
	CHECK_EQ(attributes.binary_version, 90);
	CHECK_OK(cudaFuncSetAttribute(kernel_stub, 8, 200 << 10));
	CHECK_EQ(cudaFuncSetAttribute(kernel_stub, 8, 1 << 20), RT_INVALID_VALUE);
	CHECK_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel_stub, 256, 0));
	CHECK_EQ(blocks, 8);
#if RT_MAJOR >= 12
	void *kernel;
	const char *name;
	CHECK_OK(__cudaGetKernel(&kernel, kernel_stub));
	CHECK_OK(__cudaLaunchKernel(kernel, one, block, NULL, 0, NULL));
	CHECK_OK(cudaFuncGetName(&name, other_stub));
	CHECK(!strcmp(name, "other"));
#endif
	rt_dim3 popped_grid, popped_block;
	size_t shared;
	void *stream;
	CHECK_EQ(__cudaPushCallConfiguration((rt_dim3){3, 2, 1}, block, 77, (void *)5), 0);
	CHECK_OK(__cudaPopCallConfiguration(&popped_grid, &popped_block, &shared, &stream));
	CHECK(popped_grid.x == 3 && popped_grid.y == 2 && popped_block.x == 128 && shared == 77 && stream == (void *)5);
	CHECK_EQ(__cudaPopCallConfiguration(&popped_grid, &popped_block, &shared, &stream), RT_MISSING_CONFIGURATION);
	cudaGetLastError();
}

static void test_variables(void)
{
	char in[100], out[100] = {0};
	void *address;
	size_t size;
	memset(in, 0x3c, sizeof in);
	CHECK_OK(cudaGetSymbolSize(&size, variable_stub));
	CHECK_EQ(size, 100);
	CHECK_OK(cudaMemcpyToSymbol(variable_stub, in, 50, 50, RT_HOST_TO_DEVICE));
	CHECK_OK(cudaMemcpyFromSymbol(out, variable_stub, 100, 0, RT_DEVICE_TO_HOST));
	CHECK(out[49] == 0 && out[50] == 0x3c && out[99] == 0x3c);
	CHECK_EQ(cudaMemcpyToSymbol(variable_stub, in, 51, 50, RT_HOST_TO_DEVICE), RT_INVALID_VALUE);
	CHECK_EQ(cudaMemcpyToSymbol(variable_stub, in, 1, 0, RT_DEVICE_TO_HOST), RT_INVALID_MEMCPY_DIRECTION);
	CHECK_EQ(cudaGetSymbolAddress(&address, unknown_stub), RT_INVALID_SYMBOL);
	CHECK_EQ(cudaGetSymbolAddress(&address, kernel_stub), RT_INVALID_SYMBOL);
	CHECK_OK(cudaGetSymbolAddress(&address, &managed_stub));
	CHECK(address == managed_stub);
	cudaGetLastError();
}

static void add_one(void *number) { ++*(int *)number; }

static void test_streams(void)
{
	void *stream, *start, *end;
	int priority = 0, count = 0;
	float milliseconds = -1;
	CHECK_OK(cudaStreamCreateWithPriority(&stream, 1, -1));
	CHECK_OK(cudaStreamGetPriority(stream, &priority));
	CHECK_EQ(priority, -1);
	CHECK_OK(cudaEventCreate(&start));
	CHECK_OK(cudaEventCreate(&end));
	CHECK_OK(cudaEventRecord(start, stream));
	CHECK_OK(cudaLaunchHostFunc(stream, add_one, &count));
	CHECK_OK(cudaEventRecord(end, stream));
	CHECK_OK(cudaStreamSynchronize(stream));
	CHECK_EQ(count, 1);
	CHECK_OK(cudaEventQuery(end));
	CHECK_OK(cudaEventElapsedTime(&milliseconds, start, end));
	CHECK(milliseconds >= 0);
	CHECK_OK(cudaEventDestroy(start));
	CHECK_OK(cudaEventDestroy(end));
	CHECK_OK(cudaStreamDestroy(stream));
	CHECK_EQ(cudaStreamQuery(stream), 400);
	CHECK_EQ(cudaGetLastError(), 400);
}

static void test_graph(void)
{
	void *stream, *graph, *exec, *node, *nodes[4];
	size_t count = 4;
	int status, type;
	char from[256], to[256] = {0};
	memset(from, 5, sizeof from);
	CHECK_OK(cudaStreamCreate(&stream));
	CHECK_OK(cudaStreamBeginCapture(stream, 0));
	CHECK_OK(cudaStreamIsCapturing(stream, &status));
	CHECK_EQ(status, 1);
	CHECK_OK(cudaLaunchKernel(kernel_stub, one, block, NULL, 0, stream));
	CHECK_OK(cudaStreamEndCapture(stream, &graph));
	CHECK_OK(cudaGraphGetNodes(graph, nodes, &count));
	CHECK_EQ(count, 1);
	CHECK_OK(cudaGraphNodeGetType(nodes[0], &type));
	CHECK_EQ(type, 0);
	rt_kernel_node kernel = {.func = other_stub, .grid = {4, 1, 1}, .block = block}, found;
	CHECK_OK(cudaGraphAddKernelNode(&node, graph, nodes, 1, &kernel));
	CHECK_OK(cudaGraphKernelNodeGetParams(node, &found));
	CHECK(found.grid.x == 4 && found.block.x == 128);
	CHECK_OK(cudaGraphAddMemcpyNode1D(&node, graph, &node, 1, to, from, sizeof to, RT_HOST_TO_HOST));
	rt_copy3d copy;
	CHECK_OK(cudaGraphMemcpyNodeGetParams(node, &copy));
	CHECK(copy.dst_ptr.ptr == to && copy.src_ptr.ptr == from && copy.extent.width == sizeof to &&
		  copy.kind == RT_HOST_TO_HOST);
	CHECK_OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK_EQ(to[0], 0);
	CHECK_OK(cudaGraphLaunch(exec, stream));
	CHECK_OK(cudaStreamSynchronize(stream));
	CHECK(to[0] == 5 && to[255] == 5);
	CHECK_OK(cudaGraphExecDestroy(exec));
	CHECK_OK(cudaGraphDestroy(graph));
	CHECK_OK(cudaStreamDestroy(stream));
}

TEST_MAIN
{
	void **handle = __cudaRegisterFatBinary((void *)&fatbin);
	test_registration(handle);
	test_launch();
	test_variables();
	test_streams();
	test_graph();
	__cudaUnregisterFatBinary(handle);
	CHECK_EQ(cudaLaunchKernel(kernel_stub, one, block, NULL, 0, NULL), RT_INVALID_DEVICE_FUNCTION);
	return check_done(TEST_NAME("runtime_launch"));
}
