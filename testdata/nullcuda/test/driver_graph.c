// Graphs and stream capture: what a graph does when launched, and what its
// allocations cost.
#include "cu.h"

static void append(void *text) { strcat(text, "."); }
static char order[16];
static void first(void *unused) { (void)unused; strcat(order, "1"); }
static void second(void *unused) { (void)unused; strcat(order, "2"); }

static void test_nodes_run(void)
{
	void *graph, *exec, *fill_node, *copy_node, *host_node;
	cu_ptr a, b;
	char dots[16] = "";
	unsigned value = 0;
	size_t count = 0;
	CHECK_OK(cuMemAlloc_v2(&a, 4096));
	CHECK_OK(cuMemAlloc_v2(&b, 4096));
	CHECK_OK(cuGraphCreate(&graph, 0));
	const cu_memset_node fill = {.dst = a, .value = 0x01020304, .element_size = 4, .width = 10, .height = 1};
	CHECK_OK(cuGraphAddMemsetNode(&fill_node, graph, NULL, 0, &fill, NULL));
	const cu_copy3d copy = {.src_type = CU_MEMORY_DEVICE,
		.src_device = a, .dst_type = CU_MEMORY_DEVICE, .dst_device = b, .width = 40, .height = 1, .depth = 1};
	CHECK_OK(cuGraphAddMemcpyNode(&copy_node, graph, &fill_node, 1, &copy, NULL));
	const cu_host_node host = {append, dots};
	CHECK_OK(cuGraphAddHostNode(&host_node, graph, &copy_node, 1, &host));
	CHECK_OK(cuGraphGetNodes(graph, NULL, &count));
	CHECK_EQ(count, 3);
	count = 0;
	CHECK_OK(cuGraphGetEdges(graph, NULL, NULL, &count));
	CHECK_EQ(count, 2);
	CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK_OK(cuGraphDestroy(graph)); // the executable graph is a copy
	CHECK_EQ(cuGraphDestroy(graph), CU_INVALID_VALUE);
	CHECK_OK(cuMemcpyDtoH_v2(&value, b + 36, 4));
	CHECK_EQ(value, 0); // nothing ran yet
	CHECK_OK(cuGraphLaunch(exec, NULL));
	CHECK_OK(cuGraphLaunch(exec, NULL));
	CHECK_OK(cuMemcpyDtoH_v2(&value, b + 36, 4));
	CHECK_EQ(value, 0x01020304);
	CHECK(strcmp(dots, "..") == 0);
	CHECK_OK(cuGraphExecDestroy(exec));
	CHECK_EQ(cuGraphLaunch(exec, NULL), CU_INVALID_VALUE);
	CHECK_OK(cuMemFree_v2(a));
	CHECK_OK(cuMemFree_v2(b));
}

// Edges decide the order, not the order of adding; a cycle is refused.
static void test_order(void)
{
	void *graph, *exec, *late, *early;
	const cu_host_node runs_second = {second, NULL}, runs_first = {first, NULL};
	CHECK_OK(cuGraphCreate(&graph, 0));
	CHECK_OK(cuGraphAddHostNode(&late, graph, NULL, 0, &runs_second));
	CHECK_OK(cuGraphAddHostNode(&early, graph, NULL, 0, &runs_first));
	CHECK_OK(cuGraphAddDependencies(graph, &early, &late, 1));
	CHECK_EQ(cuGraphAddDependencies(graph, &early, &late, 1), CU_INVALID_VALUE); // twice
	CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK_OK(cuGraphLaunch(exec, NULL));
	CHECK(strcmp(order, "12") == 0);
	CHECK_OK(cuGraphAddDependencies(graph, &late, &early, 1));
	void *cyclic;
	CHECK_EQ(cuGraphInstantiateWithFlags(&cyclic, graph, 0), CU_INVALID_VALUE);
	CHECK_OK(cuGraphExecDestroy(exec));
	CHECK_OK(cuGraphDestroy(graph));
}

static void test_allocation_nodes(void)
{
	enum { USED = 0, RESERVED = 2 };
	void *graph, *exec, *alloc_node, *free_node, *fill_node;
	uint64_t used, reserved;
	unsigned char byte = 0;
	long long before = used_now();
	cu_alloc_node alloc = {
		.pool = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}}, .size = 3 * MIB};
	CHECK_OK(cuGraphCreate(&graph, 0));
	CHECK_OK(cuGraphAddMemAllocNode(&alloc_node, graph, NULL, 0, &alloc));
	CHECK(alloc.address != 0);
	const cu_memset_node fill = {.dst = alloc.address, .value = 7, .element_size = 1, .width = 3 * MIB, .height = 1};
	CHECK_OK(cuGraphAddMemsetNode(&fill_node, graph, &alloc_node, 1, &fill, NULL));
	CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK_EQ(used_now(), before); // an address, no memory yet
	CHECK_EQ(cuMemcpyDtoH_v2(&byte, alloc.address, 1), CU_INVALID_VALUE);
	CHECK_OK(cuGraphLaunch(exec, NULL));
	CHECK_EQ(used_now() - before, 4 * MIB);
	CHECK_OK(cuMemcpyDtoH_v2(&byte, alloc.address + 3 * MIB - 1, 1));
	CHECK_EQ(byte, 7);
	CHECK_EQ(cuGraphLaunch(exec, NULL), CU_INVALID_VALUE); // not freed since
	CHECK_OK(cuMemFreeAsync(alloc.address, NULL));
	CHECK_OK(cuDeviceGetGraphMemAttribute(0, USED, &used));
	CHECK_OK(cuDeviceGetGraphMemAttribute(0, RESERVED, &reserved));
	CHECK_EQ(used, 0);
	CHECK_EQ(reserved, 4 * MIB);
	CHECK_OK(cuDeviceGraphMemTrim(0));
	CHECK_EQ(used_now(), before);
	CHECK_OK(cuGraphExecDestroy(exec));
	// With a free node the graph can run again and again.
	CHECK_OK(cuGraphAddMemFreeNode(&free_node, graph, &fill_node, 1, alloc.address));
	CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK_OK(cuGraphLaunch(exec, NULL));
	CHECK_OK(cuGraphLaunch(exec, NULL));
	CHECK_OK(cuDeviceGraphMemTrim(0));
	CHECK_EQ(used_now(), before);
	CHECK_OK(cuGraphExecDestroy(exec));
	CHECK_OK(cuGraphDestroy(graph));
}

static void test_capture(void)
{
	void *stream, *side, *event, *back, *graph, *exec, *module, *function;
	cu_ptr a, async;
	unsigned value = 1;
	int status;
	size_t count = 0;
	CHECK_OK(cuModuleLoadData(&module, "image"));
	CHECK_OK(cuModuleGetFunction(&function, module, "kernel"));
	CHECK_OK(cuStreamCreate(&stream, 1));
	CHECK_OK(cuStreamCreate(&side, 1));
	CHECK_OK(cuEventCreate(&event, 0));
	CHECK_OK(cuEventCreate(&back, 0));
	CHECK_OK(cuMemAlloc_v2(&a, 4096));
	CHECK_EQ(cuStreamBeginCapture_v2(NULL, 0), CU_STREAM_CAPTURE_UNSUPPORTED);
	CHECK_EQ(cuStreamEndCapture(stream, &graph), CU_ILLEGAL_STATE);
	CHECK_OK(cuStreamBeginCapture_v2(stream, 0));
	CHECK_EQ(cuStreamBeginCapture_v2(stream, 0), CU_ILLEGAL_STATE);
	CHECK_OK(cuStreamIsCapturing(stream, &status));
	CHECK_EQ(status, 1);
	CHECK_EQ(cuStreamSynchronize(stream), CU_STREAM_CAPTURE_UNSUPPORTED);
	CHECK_OK(cuMemsetD32Async(a, 5, 1, stream));
	CHECK_OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	// A second stream joins by an event and leaves by another.
	CHECK_OK(cuEventRecord(event, stream));
	CHECK_OK(cuStreamWaitEvent(side, event, 0));
	CHECK_OK(cuStreamIsCapturing(side, &status));
	CHECK_EQ(status, 1);
	CHECK_OK(cuMemAllocAsync(&async, 1000, side));
	CHECK_OK(cuMemFreeAsync(async, side));
	CHECK_OK(cuEventRecord(back, side));
	CHECK_OK(cuStreamWaitEvent(stream, back, 0));
	CHECK_EQ(cuStreamEndCapture(side, &graph), CU_STREAM_CAPTURE_UNMATCHED);
	CHECK_OK(cuMemcpyDtoDAsync_v2(a + 4, a, 4, stream));
	CHECK_OK(cuStreamEndCapture(stream, &graph));
	CHECK_OK(cuStreamIsCapturing(side, &status));
	CHECK_EQ(status, 0);
	CHECK_OK(cuGraphGetNodes(graph, NULL, &count));
	CHECK_EQ(count, 6); // fill, kernel, alloc, free, the join, copy
	CHECK_OK(cuMemcpyDtoH_v2(&value, a, 4));
	CHECK_EQ(value, 0); // recorded, not done
	CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK_OK(cuGraphLaunch(exec, stream));
	CHECK_OK(cuMemcpyDtoH_v2(&value, a + 4, 4));
	CHECK_EQ(value, 5);
	cu_update_result result;
	CHECK_OK(cuGraphExecUpdate_v2(exec, graph, &result));
	CHECK_OK(cuGraphLaunch(exec, stream));
	CHECK_OK(cuGraphExecDestroy(exec));
	CHECK_OK(cuGraphDestroy(graph));
	// A stream destroyed while it captures takes its graph along.
	CHECK_OK(cuStreamBeginCapture_v2(side, 2));
	CHECK_OK(cuMemsetD32Async(a, 6, 1, side));
	CHECK_OK(cuStreamDestroy_v2(side));
	CHECK_OK(cuStreamDestroy_v2(stream));
	CHECK_OK(cuModuleUnload(module));
	CHECK_OK(cuMemFree_v2(a));
	CHECK_OK(cuDeviceGraphMemTrim(0));
}

static void test_child_graph(void)
{
	void *parent, *child, *node, *exec, *other;
	char dots[16] = "";
	const cu_host_node host = {append, dots};
	CHECK_OK(cuGraphCreate(&parent, 0));
	CHECK_OK(cuGraphCreate(&child, 0));
	CHECK_OK(cuGraphAddHostNode(&node, child, NULL, 0, &host));
	CHECK_OK(cuGraphAddChildGraphNode(&other, parent, NULL, 0, child));
	CHECK_EQ(cuGraphAddChildGraphNode(&other, parent, &node, 1, child), CU_INVALID_VALUE); // of another graph
	CHECK_OK(cuGraphAddHostNode(&node, child, &node, 1, &host)); // too late for the parent's copy
	CHECK_OK(cuGraphDestroy(child));
	CHECK_OK(cuGraphInstantiateWithFlags(&exec, parent, 0));
	CHECK_OK(cuGraphLaunch(exec, NULL));
	CHECK(strcmp(dots, ".") == 0);
	CHECK_OK(cuGraphExecDestroy(exec));
	CHECK_OK(cuGraphDestroy(parent));
}

int main(void)
{
	start();
	test_nodes_run();
	test_order();
	test_allocation_nodes();
	test_capture();
	test_child_graph();
	return check_done("driver_graph");
}
