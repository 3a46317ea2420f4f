// One call for nodes of all types. 12 has it with and without data of the edges; 13
// gave the first name the second's signature.
#include "copy.h"
#include "runtime.h"

#if RT_MAJOR >= 12

#include <string.h>

// The parts that differ are translated; hosts, events, children and memory are the same
// to the driver.
static int to_driver(const rt_node_params *in, cu_node_params *out)
{
	void *context;
	RT_TRY(rt_calls->cuCtxGetCurrent(&context));
	*out = (cu_node_params){.type = in->type};
	switch (in->type) {
	case RT_NODE_KERNEL:
		return rt_kernel_node_to_driver(&in->of.kernel, &out->kernel);
	case RT_NODE_COPY:
		out->copy.context = context;
		return rt_copy3d_to_driver(&in->of.copy.params, &out->copy.copy);
	case RT_NODE_FILL:
		memcpy(&out->set, &in->of.fill, sizeof in->of.fill);
		out->set.context = context;
		return RT_OK;
	default:
		memcpy(out->reserved1, in->of.reserved1, sizeof out->reserved1);
		return RT_OK;
	}
}

// The address of an allocation comes back in the parameters.
static void from_driver(const cu_node_params *in, rt_node_params *out)
{
	if (out->type == RT_NODE_ALLOC)
		out->of.alloc.address = in->alloc.address;
}

static int add_with_edges(
	void **node, void *graph, void *const *dependencies, const void *edges, size_t count, rt_node_params *params)
{
	cu_node_params driver;
	RT_TRY(rt_enter());
	if (!params)
		return RT_INVALID_VALUE;
	RT_TRY(to_driver(params, &driver));
	RT_TRY(rt_calls->cuGraphAddNodeWithEdges(node, graph, dependencies, edges, count, &driver));
	from_driver(&driver, params);
	return RT_OK;
}

#if RT_MAJOR == 12
static int add(void **node, void *graph, void *const *dependencies, size_t count, rt_node_params *params)
{
	cu_node_params driver;
	RT_TRY(rt_enter());
	if (!params)
		return RT_INVALID_VALUE;
	RT_TRY(to_driver(params, &driver));
	RT_TRY(rt_calls->cuGraphAddNode(node, graph, dependencies, count, &driver));
	from_driver(&driver, params);
	return RT_OK;
}

RT_API cudaGraphAddNode(void **node, void *graph, void *const *dependencies, size_t count, rt_node_params *params)
{
	return rt_done(add(node, graph, dependencies, count, params));
}

RT_API cudaGraphAddNode_v2(
	void **node, void *graph, void *const *dependencies, const void *edges, size_t count, rt_node_params *params)
{
	return rt_done(add_with_edges(node, graph, dependencies, edges, count, params));
}
#else
RT_API cudaGraphAddNode(
	void **node, void *graph, void *const *dependencies, const void *edges, size_t count, rt_node_params *params)
{
	return rt_done(add_with_edges(node, graph, dependencies, edges, count, params));
}
#endif

#endif
