// Memory from elsewhere, sparse arrays, and nodes of graphs.
#include "rt.h"

#include <sys/mman.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static void test_external(void)
{
	void *memory, *buffer, *mipmap, *level;
	int value = 5, fd = memfd_create("other", MFD_CLOEXEC), mine;
	size_t before = rt_used();
	CHECK_EQ(ftruncate(fd, MIB), 0);
	mine = dup(fd);
	const rt_external_memory desc = {.type = CU_EXTERNAL_OPAQUE_FD, .handle = {.fd = fd}, .size = MIB};
	CHECK_OK(cudaImportExternalMemory(&memory, &desc));
	const rt_external_buffer part = {.offset = 4096, .size = 8192}, beyond = {.offset = MIB, .size = 1};
	CHECK_OK(cudaExternalMemoryGetMappedBuffer(&buffer, memory, &part));
	CHECK_EQ(cudaExternalMemoryGetMappedBuffer(&buffer, memory, &beyond), RT_INVALID_VALUE);
	CHECK_OK(cudaMemcpy((char *)buffer + 4, &value, sizeof value, RT_HOST_TO_DEVICE));
	value = 0;
	CHECK_EQ(pread(mine, &value, sizeof value, 4100), (int)sizeof value);
	CHECK_EQ(value, 5);
	const rt_external_mipmap levels = {
		.offset = 65536, .channel = cudaCreateChannelDesc(8, 0, 0, 0, 1), .extent = {64, 64, 0}, .levels = 2};
	CHECK_OK(cudaExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &levels));
	CHECK_OK(cudaGetMipmappedArrayLevel(&level, mipmap, 1));
	CHECK_OK(cudaMemcpy2DToArray(level, 0, 0, "row", 4, 4, 1, RT_HOST_TO_DEVICE));
	char text[4] = "";
	CHECK_EQ(pread(mine, text, sizeof text, 65536 + 64 * 64), (int)sizeof text);
	CHECK(!strcmp(text, "row"));
	CHECK_EQ(rt_used(), before);
	CHECK_OK(cudaFree(buffer));
	CHECK_OK(cudaFreeMipmappedArray(mipmap));
	CHECK_OK(cudaDestroyExternalMemory(memory));
	CHECK_EQ(cudaDestroyExternalMemory(memory), 400);
	close(mine);
	cudaGetLastError();
}

static void test_pool_export(void)
{
	const cu_pool_props props = {
		.type = CU_ALLOCATION_PINNED, .handle_types = CU_HANDLE_FD, .location = {CU_LOCATION_DEVICE, 0}};
	void *pool, *imported, *block, *same;
	cu_pool_export data;
	int fd = -1, value = 6;
	size_t before = rt_used();
	CHECK_OK(cudaMemPoolCreate(&pool, &props));
	CHECK_OK(cudaMallocFromPoolAsync(&block, 1000, pool, NULL));
	CHECK_OK(cudaMemPoolExportToShareableHandle(&fd, pool, CU_HANDLE_FD, 0));
	CHECK_OK(cudaMemPoolExportPointer(&data, block));
	CHECK_OK(cudaMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd, CU_HANDLE_FD, 0));
	close(fd);
	CHECK_OK(cudaMemPoolImportPointer(&same, imported, &data));
	CHECK(same != block);
	CHECK_OK(cudaMemcpy(block, &value, sizeof value, RT_HOST_TO_DEVICE));
	value = 0;
	CHECK_OK(cudaMemcpy(&value, same, sizeof value, RT_DEVICE_TO_HOST));
	CHECK_EQ(value, 6);
	CHECK_EQ(rt_used() - before, 32 * MIB);
	CHECK_OK(cudaFreeAsync(same, NULL));
	CHECK_OK(cudaMemPoolDestroy(imported));
	CHECK_OK(cudaFreeAsync(block, NULL));
	CHECK_OK(cudaMemPoolDestroy(pool));
	CHECK_EQ(rt_used(), before);
#if RT_MAJOR >= 13
	cu_location here = {CU_LOCATION_DEVICE, 0};
	CHECK_OK(cudaDeviceGetDefaultMemPool(&pool, 0));
	CHECK_OK(cudaMemGetDefaultMemPool(&imported, &here, CU_ALLOCATION_PINNED));
	CHECK(pool == imported);
	CHECK_OK(cudaMemSetMemPool(&here, CU_ALLOCATION_PINNED, pool));
	CHECK_OK(cudaMemGetMemPool(&imported, &here, CU_ALLOCATION_PINNED));
	CHECK(pool == imported);
#endif
}

static void test_arrays(void)
{
	enum { SPARSE = 0x40 };
	rt_channel floats = cudaCreateChannelDesc(32, 0, 0, 0, 2);
	void *array, *mipmap;
	cu_sparse_properties properties;
	size_t before = rt_used();
	CHECK_OK(cudaMallocMipmappedArray(&mipmap, &floats, (rt_extent){64, 64, 0}, 3, 0));
	CHECK_EQ(rt_used() - before, 4 * (64 * 64 + 32 * 32 + 16 * 16));
	CHECK_OK(cudaFreeMipmappedArray(mipmap));
	CHECK_OK(cudaMallocArray(&array, &floats, 512, 512, SPARSE));
	CHECK_EQ(rt_used(), before);
	CHECK_OK(cudaArrayGetSparseProperties(&properties, array));
	CHECK(properties.tile_width == 128 && properties.tile_height == 128);
	CHECK_OK(cudaFreeArray(array));
	CHECK_OK(cudaMallocMipmappedArray(&mipmap, &floats, (rt_extent){512, 512, 0}, 3, SPARSE));
	CHECK_OK(cudaMipmappedArrayGetSparseProperties(&properties, mipmap));
	CHECK_EQ(properties.tail_first_level, 3);
	CHECK_OK(cudaFreeMipmappedArray(mipmap));
	CHECK_EQ(rt_used(), before);
}

#if RT_MAJOR >= 12
static void run(void *graph)
{
	void *exec;
	CHECK_OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK_OK(cudaGraphLaunch(exec, NULL));
	CHECK_OK(cudaGraphExecDestroy(exec));
	CHECK_OK(cudaGraphDestroy(graph));
}

#if RT_MAJOR == 12
#define ADD(node, graph, after, count, params) cudaGraphAddNode(node, graph, after, count, params)
#else
#define ADD(node, graph, after, count, params) cudaGraphAddNode(node, graph, after, NULL, count, params)
#endif

// Memory made, filled, copied out and freed by nodes of the one call.
static void test_graph_nodes(void)
{
	void *graph, *nodes[4];
	unsigned char out[100] = {0};
	size_t before = rt_used();
	CHECK_OK(cudaGraphCreate(&graph, 0));
	rt_node_params alloc = {.type = RT_NODE_ALLOC};
	alloc.of.alloc =
		(cu_alloc_node){.pool = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}}, .size = 100};
	CHECK_OK(ADD(&nodes[0], graph, NULL, 0, &alloc));
	void *address = (void *)alloc.of.alloc.address;
	CHECK(address != NULL);
	rt_node_params fill = {.type = RT_NODE_FILL};
	fill.of.fill = (rt_memset_node){.destination = address, .value = 7, .element_bytes = 1, .width = 100, .height = 1};
	CHECK_OK(ADD(&nodes[1], graph, &nodes[0], 1, &fill));
	rt_node_params copy = {.type = RT_NODE_COPY};
	copy.of.copy.params = (rt_copy3d){.src_ptr = {address, 100, 100, 1},
		.dst_ptr = {out, 100, 100, 1},
		.extent = {100, 1, 1},
		.kind = RT_DEVICE_TO_HOST};
	CHECK_OK(ADD(&nodes[2], graph, &nodes[1], 1, &copy));
	rt_node_params end = {.type = RT_NODE_FREE};
	end.of.free_address = alloc.of.alloc.address;
#if RT_MAJOR == 12
	CHECK_OK(cudaGraphAddNode_v2(&nodes[3], graph, &nodes[2], NULL, 1, &end));
#else
	CHECK_OK(ADD(&nodes[3], graph, &nodes[2], 1, &end));
#endif
	rt_node_params unknown = {.type = 13};
	CHECK_EQ(ADD(&nodes[3], graph, NULL, 0, &unknown), RT_NOT_SUPPORTED);
	CHECK_EQ(ADD(&nodes[3], graph, NULL, 0, NULL), RT_INVALID_VALUE);
	run(graph);
	CHECK_EQ(out[0], 7);
	CHECK_EQ(out[99], 7);
	CHECK_OK(cudaDeviceGraphMemTrim(0));
	CHECK_EQ(rt_used(), before);
	cudaGetLastError();
}
#endif

TEST_MAIN
{
	test_external();
	test_pool_export();
	test_arrays();
#if RT_MAJOR >= 12
	test_graph_nodes();
#endif
	return check_done(TEST_NAME("runtime_share"));
}
