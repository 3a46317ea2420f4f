// The public side of graphs.
#include "graph.h"
#include "graph_memory.h"

#include <string.h>

static cu_result find_graph(void *handle, struct nc_graph **graph)
{
	*graph = nc_object_find(handle, NC_GRAPH);
	return *graph ? CU_OK : CU_INVALID_VALUE;
}

CU_API cuGraphCreate(void **graph, unsigned flags)
{
	NC_TRY(nc_init_check());
	if (!graph || flags)
		return CU_INVALID_VALUE;
	NC_ENTER();
	*graph = nc_graph_new();
	return *graph ? CU_OK : CU_OUT_OF_MEMORY;
}

CU_API cuGraphDestroy(void *handle)
{
	struct nc_graph *graph;
	NC_ENTER();
	NC_TRY(find_graph(handle, &graph));
	if (graph->child || graph->captures)
		return CU_INVALID_VALUE;
	nc_graph_delete(graph);
	return CU_OK;
}

CU_API cuGraphClone(void **clone, void *handle)
{
	struct nc_graph *graph, *copy;
	NC_ENTER();
	NC_TRY(find_graph(handle, &graph));
	if (!clone)
		return CU_INVALID_VALUE;
	NC_TRY(nc_graph_clone(graph, &copy));
	*clone = copy;
	return CU_OK;
}

static cu_result add(void **out, void *handle, void *const *dependencies, size_t count, const struct nc_work *work)
{
	struct nc_graph *graph;
	struct nc_node *node;
	NC_ENTER();
	NC_TRY(find_graph(handle, &graph));
	if (!out)
		return CU_INVALID_VALUE;
	NC_TRY(nc_graph_add(graph, dependencies, count, work, &node));
	*out = node;
	return CU_OK;
}

// The two versions of kernel parameters differ in the two words at the end.
static struct nc_work kernel_work(const cu_kernel_node *kernel, bool first_version)
{
	struct nc_work work = {.type = NC_NODE_KERNEL};
	memcpy(&work.kernel, kernel, first_version ? offsetof(cu_kernel_node, kernel) : sizeof *kernel);
	return work;
}

CU_API cuGraphAddKernelNode(
	void **node, void *graph, void *const *dependencies, size_t count, const cu_kernel_node *kernel)
{
	if (!kernel)
		return CU_INVALID_VALUE;
	const struct nc_work work = kernel_work(kernel, true);
	return add(node, graph, dependencies, count, &work);
}

CU_API cuGraphAddKernelNode_v2(
	void **node, void *graph, void *const *dependencies, size_t count, const cu_kernel_node *kernel)
{
	if (!kernel)
		return CU_INVALID_VALUE;
	const struct nc_work work = kernel_work(kernel, false);
	return add(node, graph, dependencies, count, &work);
}

CU_API cuGraphAddMemcpyNode(
	void **node, void *graph, void *const *dependencies, size_t count, const cu_copy3d *copy, void *context)
{
	(void)context;
	if (!copy)
		return CU_INVALID_VALUE;
	const struct nc_work work = {.type = NC_NODE_COPY, .copy = *copy};
	return add(node, graph, dependencies, count, &work);
}

CU_API cuGraphAddMemsetNode(
	void **node, void *graph, void *const *dependencies, size_t count, const cu_memset_node *fill, void *context)
{
	if (!fill)
		return CU_INVALID_VALUE;
	struct nc_work work = {.type = NC_NODE_FILL};
	memcpy(&work.fill, fill, offsetof(cu_memset_node, context));
	work.fill.context = context;
	return add(node, graph, dependencies, count, &work);
}

CU_API cuGraphAddHostNode(void **node, void *graph, void *const *dependencies, size_t count, const cu_host_node *host)
{
	if (!host || !host->fn)
		return CU_INVALID_VALUE;
	const struct nc_work work = {.type = NC_NODE_HOST, .host = *host};
	return add(node, graph, dependencies, count, &work);
}

CU_API cuGraphAddEmptyNode(void **node, void *graph, void *const *dependencies, size_t count)
{
	const struct nc_work work = {.type = NC_NODE_EMPTY};
	return add(node, graph, dependencies, count, &work);
}

static cu_result add_event(
	void **node, void *graph, void *const *dependencies, size_t count, void *event, enum nc_node_type type)
{
	const struct nc_work work = {.type = type, .event = event};
	return event ? add(node, graph, dependencies, count, &work) : CU_INVALID_VALUE;
}

CU_API cuGraphAddEventRecordNode(void **node, void *graph, void *const *dependencies, size_t count, void *event)
{
	return add_event(node, graph, dependencies, count, event, NC_NODE_RECORD_EVENT);
}

CU_API cuGraphAddEventWaitNode(void **node, void *graph, void *const *dependencies, size_t count, void *event)
{
	return add_event(node, graph, dependencies, count, event, NC_NODE_WAIT_EVENT);
}

CU_API cuGraphAddChildGraphNode(void **out, void *handle, void *const *dependencies, size_t count, void *child_handle)
{
	struct nc_graph *graph, *child;
	struct nc_node *node;
	NC_ENTER();
	NC_TRY(find_graph(handle, &graph));
	NC_TRY(find_graph(child_handle, &child));
	if (!out || child == graph)
		return CU_INVALID_VALUE;
	const struct nc_work work = {.type = NC_NODE_CHILD, .child = child};
	NC_TRY(nc_graph_add(graph, dependencies, count, &work, &node));
	*out = node;
	return CU_OK;
}

// Fixes the address and writes it into the caller's parameters.
CU_API cuGraphAddMemAllocNode(void **out, void *handle, void *const *dependencies, size_t count, cu_alloc_node *alloc)
{
	struct nc_graph *graph;
	struct nc_node *node;
	NC_ENTER();
	NC_TRY(find_graph(handle, &graph));
	if (!out || !alloc || alloc->pool.type != CU_ALLOCATION_PINNED || alloc->pool.location.type != CU_LOCATION_DEVICE)
		return CU_INVALID_VALUE;
	if (!nc_device_valid(alloc->pool.location.id))
		return CU_INVALID_DEVICE;
	struct nc_work work = {.type = NC_NODE_ALLOC, .alloc = *alloc};
	// The caller's access list may not outlive this call; peers reach all memory.
	work.alloc.access = NULL;
	work.alloc.access_count = 0;
	NC_TRY(nc_graph_memory_reserve(alloc->pool.location.id, alloc->size, &work.alloc.address));
	NC_TRY(nc_graph_add(graph, dependencies, count, &work, &node));
	alloc->address = work.alloc.address;
	*out = node;
	return CU_OK;
}

CU_API cuGraphAddMemFreeNode(void **node, void *graph, void *const *dependencies, size_t count, cu_ptr address)
{
	const struct nc_work work = {.type = NC_NODE_FREE, .free_address = address};
	return address ? add(node, graph, dependencies, count, &work) : CU_INVALID_VALUE;
}

// One entry for all types. The first version has no edge data.
CU_API cuGraphAddNode(void **node, void *graph, void *const *dependencies, size_t count, cu_node_params *params)
{
	if (!params)
		return CU_INVALID_VALUE;
	switch (params->type) {
	case NC_NODE_KERNEL: return cuGraphAddKernelNode_v2(node, graph, dependencies, count, &params->kernel);
	case NC_NODE_COPY: return cuGraphAddMemcpyNode(node, graph, dependencies, count, &params->copy.copy, NULL);
	case NC_NODE_FILL: return cuGraphAddMemsetNode(node, graph, dependencies, count, &params->set, params->set.context);
	case NC_NODE_HOST: return cuGraphAddHostNode(node, graph, dependencies, count, &params->host);
	case NC_NODE_CHILD: return cuGraphAddChildGraphNode(node, graph, dependencies, count, params->child);
	case NC_NODE_EMPTY: return cuGraphAddEmptyNode(node, graph, dependencies, count);
	case NC_NODE_WAIT_EVENT: return cuGraphAddEventWaitNode(node, graph, dependencies, count, params->event);
	case NC_NODE_RECORD_EVENT: return cuGraphAddEventRecordNode(node, graph, dependencies, count, params->event);
	case NC_NODE_ALLOC: return cuGraphAddMemAllocNode(node, graph, dependencies, count, &params->alloc);
	case NC_NODE_FREE: return cuGraphAddMemFreeNode(node, graph, dependencies, count, params->free_address);
	default: return CU_NOT_SUPPORTED;
	}
}

CU_API cuGraphAddNode_v2(
	void **node, void *graph, void *const *dependencies, const cu_edge_data *data, size_t count, cu_node_params *params)
{
	(void)data;
	return cuGraphAddNode(node, graph, dependencies, count, params);
}

CU_API cuGraphAddNode_v3(
	void **node, void *graph, void *const *dependencies, const cu_edge_data *data, size_t count, cu_node_params *params)
{
	return cuGraphAddNode_v2(node, graph, dependencies, data, count, params);
}
