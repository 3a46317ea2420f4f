// Questions about nodes and edges, and changes to them.
#include "graph.h"

#include <stdlib.h>
#include <string.h>

static cu_result find_graph(void *handle, struct nc_graph **graph)
{
	*graph = nc_object_find(handle, NC_GRAPH);
	return *graph ? CU_OK : CU_INVALID_VALUE;
}

static cu_result find_node(void *handle, struct nc_node **node)
{
	*node = nc_object_find(handle, NC_NODE);
	return *node ? CU_OK : CU_INVALID_VALUE;
}

static cu_result find_typed(void *handle, enum nc_node_type type, struct nc_node **node)
{
	NC_TRY(find_node(handle, node));
	return (*node)->work.type == type ? CU_OK : CU_INVALID_VALUE;
}

CU_API cuGraphNodeGetType(void *handle, int *type)
{
	struct nc_node *node;
	NC_ENTER();
	NC_TRY(find_node(handle, &node));
	if (!type)
		return CU_INVALID_VALUE;
	*type = node->work.type;
	return CU_OK;
}

// A list of handles being returned: counts all, stores while there is room.
struct answer {
	void **out;
	size_t room, count;
};

static void answer_add(struct answer *answer, void *handle)
{
	if (answer->out && answer->count < answer->room)
		answer->out[answer->count] = handle;
	answer->count++;
}

// Without a list the count is asked for; with one it says how many were stored,
// and the entries beyond are set to NULL.
static void answer_finish(struct answer *answer, size_t *count)
{
	if (!answer->out) {
		*count = answer->count;
		return;
	}
	for (size_t i = answer->count; i < answer->room; i++)
		answer->out[i] = NULL;
	if (answer->count < *count)
		*count = answer->count;
}

static cu_result list_nodes(void *handle, void **nodes, size_t *count, bool roots_only)
{
	struct nc_graph *graph;
	NC_ENTER();
	NC_TRY(find_graph(handle, &graph));
	if (!count)
		return CU_INVALID_VALUE;
	struct answer answer = {.out = nodes, .room = *count};
	for (struct nc_node *node = graph->first; node; node = node->next)
		if (!roots_only || !node->dependency_count)
			answer_add(&answer, node);
	answer_finish(&answer, count);
	return CU_OK;
}

CU_API cuGraphGetNodes(void *graph, void **nodes, size_t *count) { return list_nodes(graph, nodes, count, false); }
CU_API cuGraphGetRootNodes(void *graph, void **nodes, size_t *count) { return list_nodes(graph, nodes, count, true); }

CU_API cuGraphGetEdges(void *handle, void **from, void **to, size_t *count)
{
	struct nc_graph *graph;
	NC_ENTER();
	NC_TRY(find_graph(handle, &graph));
	if (!count || !from != !to)
		return CU_INVALID_VALUE;
	struct answer sources = {.out = from, .room = *count}, targets = {.out = to, .room = *count};
	for (struct nc_node *node = graph->first; node; node = node->next)
		for (size_t i = 0; i < node->dependency_count; i++) {
			answer_add(&sources, node->dependencies[i]);
			answer_add(&targets, node);
		}
	size_t copy = *count;
	answer_finish(&sources, &copy);
	answer_finish(&targets, count);
	return CU_OK;
}

CU_API cuGraphGetEdges_v2(void *graph, void **from, void **to, cu_edge_data *data, size_t *count)
{
	NC_TRY(cuGraphGetEdges(graph, from, to, count));
	if (data && from)
		memset(data, 0, *count * sizeof *data);
	return CU_OK;
}

CU_API cuGraphNodeGetDependencies(void *handle, void **nodes, size_t *count)
{
	struct nc_node *node;
	NC_ENTER();
	NC_TRY(find_node(handle, &node));
	if (!count)
		return CU_INVALID_VALUE;
	struct answer answer = {.out = nodes, .room = *count};
	for (size_t i = 0; i < node->dependency_count; i++)
		answer_add(&answer, node->dependencies[i]);
	answer_finish(&answer, count);
	return CU_OK;
}

CU_API cuGraphNodeGetDependencies_v2(void *node, void **nodes, cu_edge_data *data, size_t *count)
{
	NC_TRY(cuGraphNodeGetDependencies(node, nodes, count));
	if (data && nodes)
		memset(data, 0, *count * sizeof *data);
	return CU_OK;
}

static bool depends_on(const struct nc_node *node, const struct nc_node *other)
{
	for (size_t i = 0; i < node->dependency_count; i++)
		if (node->dependencies[i] == other)
			return true;
	return false;
}

CU_API cuGraphNodeGetDependentNodes(void *handle, void **nodes, size_t *count)
{
	struct nc_node *node;
	NC_ENTER();
	NC_TRY(find_node(handle, &node));
	if (!count)
		return CU_INVALID_VALUE;
	struct answer answer = {.out = nodes, .room = *count};
	for (struct nc_node *other = node->graph->first; other; other = other->next)
		if (depends_on(other, node))
			answer_add(&answer, other);
	answer_finish(&answer, count);
	return CU_OK;
}

CU_API cuGraphNodeGetDependentNodes_v2(void *node, void **nodes, cu_edge_data *data, size_t *count)
{
	NC_TRY(cuGraphNodeGetDependentNodes(node, nodes, count));
	if (data && nodes)
		memset(data, 0, *count * sizeof *data);
	return CU_OK;
}

static cu_result edge_ends(
	struct nc_graph *graph, void *from, void *to, struct nc_node **source, struct nc_node **target)
{
	NC_TRY(find_node(from, source));
	NC_TRY(find_node(to, target));
	return (*source)->graph == graph && (*target)->graph == graph && *source != *target ? CU_OK : CU_INVALID_VALUE;
}

static cu_result add_edge(struct nc_node *source, struct nc_node *target)
{
	if (depends_on(target, source))
		return CU_INVALID_VALUE;
	size_t count = target->dependency_count + 1;
	struct nc_node **grown = realloc(target->dependencies, count * sizeof *grown);
	if (!grown)
		return CU_OUT_OF_MEMORY;
	grown[count - 1] = source;
	target->dependencies = grown;
	target->dependency_count = count;
	return CU_OK;
}

static cu_result remove_edge(struct nc_node *source, struct nc_node *target)
{
	for (size_t i = 0; i < target->dependency_count; i++)
		if (target->dependencies[i] == source) {
			target->dependencies[i] = target->dependencies[--target->dependency_count];
			return CU_OK;
		}
	return CU_INVALID_VALUE;
}

static cu_result change_edges(void *handle, void *const *from, void *const *to, size_t count,
                              cu_result (*change)(struct nc_node *source, struct nc_node *target))
{
	struct nc_graph *graph;
	struct nc_node *source, *target;
	NC_ENTER();
	NC_TRY(find_graph(handle, &graph));
	if (count && (!from || !to))
		return CU_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		NC_TRY(edge_ends(graph, from[i], to[i], &source, &target));
		NC_TRY(change(source, target));
	}
	return CU_OK;
}

CU_API cuGraphAddDependencies(void *graph, void *const *from, void *const *to, size_t count)
{
	return change_edges(graph, from, to, count, add_edge);
}

CU_API cuGraphAddDependencies_v2(
	void *graph, void *const *from, void *const *to, const cu_edge_data *data, size_t count)
{
	(void)data;
	return change_edges(graph, from, to, count, add_edge);
}

CU_API cuGraphRemoveDependencies(void *graph, void *const *from, void *const *to, size_t count)
{
	return change_edges(graph, from, to, count, remove_edge);
}

CU_API cuGraphRemoveDependencies_v2(
	void *graph, void *const *from, void *const *to, const cu_edge_data *data, size_t count)
{
	(void)data;
	return change_edges(graph, from, to, count, remove_edge);
}

CU_API cuGraphDestroyNode(void *handle)
{
	struct nc_node *node;
	NC_ENTER();
	NC_TRY(find_node(handle, &node));
	for (struct nc_node *other = node->graph->first; other; other = other->next)
		remove_edge(node, other);
	nc_graph_remove(node);
	return CU_OK;
}

CU_API cuGraphNodeFindInClone(void **out, void *original, void *handle)
{
	struct nc_graph *clone;
	NC_ENTER();
	NC_TRY(find_graph(handle, &clone));
	struct nc_node *node = nc_graph_counterpart(clone, original);
	if (!out || !node)
		return CU_INVALID_VALUE;
	*out = node;
	return CU_OK;
}

CU_API cuGraphChildGraphNodeGetGraph(void *handle, void **graph)
{
	struct nc_node *node;
	NC_ENTER();
	NC_TRY(find_typed(handle, NC_NODE_CHILD, &node));
	if (!graph)
		return CU_INVALID_VALUE;
	*graph = node->work.child;
	return CU_OK;
}

// Parameters of a node, read and written. `bytes` is what the caller's struct has.
static cu_result get_params(void *handle, enum nc_node_type type, void *out, size_t bytes)
{
	struct nc_node *node;
	NC_ENTER();
	NC_TRY(find_typed(handle, type, &node));
	if (!out)
		return CU_INVALID_VALUE;
	memcpy(out, &node->work.kernel, bytes); // every member of the union starts here
	return CU_OK;
}

static cu_result set_params(void *handle, enum nc_node_type type, const void *in, size_t bytes)
{
	struct nc_node *node;
	NC_ENTER();
	NC_TRY(find_typed(handle, type, &node));
	if (!in)
		return CU_INVALID_VALUE;
	memcpy(&node->work.kernel, in, bytes);
	return CU_OK;
}

#define KERNEL_V1_BYTES offsetof(cu_kernel_node, kernel)
#define FILL_BYTES offsetof(cu_memset_node, context)

CU_API cuGraphKernelNodeGetParams(void *node, void *out)
{
	return get_params(node, NC_NODE_KERNEL, out, KERNEL_V1_BYTES);
}
CU_API cuGraphKernelNodeSetParams(void *node, const void *in)
{
	return set_params(node, NC_NODE_KERNEL, in, KERNEL_V1_BYTES);
}
CU_API cuGraphKernelNodeGetParams_v2(void *node, void *out)
{
	return get_params(node, NC_NODE_KERNEL, out, sizeof(cu_kernel_node));
}
CU_API cuGraphKernelNodeSetParams_v2(void *node, const void *in)
{
	return set_params(node, NC_NODE_KERNEL, in, sizeof(cu_kernel_node));
}
CU_API cuGraphMemcpyNodeGetParams(void *node, void *out)
{
	return get_params(node, NC_NODE_COPY, out, sizeof(cu_copy3d));
}
CU_API cuGraphMemcpyNodeSetParams(void *node, const void *in)
{
	return set_params(node, NC_NODE_COPY, in, sizeof(cu_copy3d));
}
CU_API cuGraphMemsetNodeGetParams(void *node, void *out) { return get_params(node, NC_NODE_FILL, out, FILL_BYTES); }
CU_API cuGraphMemsetNodeSetParams(void *node, const void *in) { return set_params(node, NC_NODE_FILL, in, FILL_BYTES); }
CU_API cuGraphHostNodeGetParams(void *node, void *out)
{
	return get_params(node, NC_NODE_HOST, out, sizeof(cu_host_node));
}
CU_API cuGraphHostNodeSetParams(void *node, const void *in)
{
	return set_params(node, NC_NODE_HOST, in, sizeof(cu_host_node));
}
CU_API cuGraphMemAllocNodeGetParams(void *node, void *out)
{
	return get_params(node, NC_NODE_ALLOC, out, sizeof(cu_alloc_node));
}
CU_API cuGraphMemFreeNodeGetParams(void *node, void *out)
{
	return get_params(node, NC_NODE_FREE, out, sizeof(cu_ptr));
}
CU_API cuGraphEventRecordNodeGetEvent(void *node, void *out)
{
	return get_params(node, NC_NODE_RECORD_EVENT, out, sizeof(void *));
}
CU_API cuGraphEventWaitNodeGetEvent(void *node, void *out)
{
	return get_params(node, NC_NODE_WAIT_EVENT, out, sizeof(void *));
}
CU_API cuGraphEventRecordNodeSetEvent(void *node, void *event)
{
	return set_params(node, NC_NODE_RECORD_EVENT, &event, sizeof event);
}
CU_API cuGraphEventWaitNodeSetEvent(void *node, void *event)
{
	return set_params(node, NC_NODE_WAIT_EVENT, &event, sizeof event);
}
