// Executable graphs: an ordered copy of a graph, launched as often as wished.
#include "capture.h"
#include "context.h"
#include "graph.h"
#include "memory.h"

#include <string.h>

struct nc_exec {
	struct nc_object object;
	struct nc_graph *graph;
	uint64_t flags;
};

static cu_result find_exec(void *handle, struct nc_exec **exec)
{
	*exec = nc_object_find(handle, NC_EXEC);
	return *exec ? CU_OK : CU_INVALID_VALUE;
}

static cu_result instantiate(void **out, void *handle, uint64_t flags)
{
	struct nc_graph *copy;
	NC_ENTER();
	struct nc_graph *graph = nc_object_find(handle, NC_GRAPH);
	if (!out || !graph)
		return CU_INVALID_VALUE;
	NC_TRY(nc_graph_clone(graph, &copy));
	cu_result result = nc_graph_order(copy);
	struct nc_exec *exec = result == CU_OK ? nc_object_new(NC_EXEC, sizeof *exec, NULL) : NULL;
	if (!exec) {
		nc_graph_delete(copy);
		return result == CU_OK ? CU_OUT_OF_MEMORY : result;
	}
	copy->child = true; // the program cannot destroy it by its own handle
	exec->graph = copy;
	exec->flags = flags;
	*out = exec;
	return CU_OK;
}

// Versions 1 and 2 can name the node that failed; no single one ever does here.
CU_API cuGraphInstantiate_v2(void **exec, void *graph, void **error_node, char *log, size_t bytes)
{
	if (error_node)
		*error_node = NULL;
	if (log && bytes)
		*log = 0;
	return instantiate(exec, graph, 0);
}

CU_API cuGraphInstantiate(void **exec, void *graph, void **error_node, char *log, size_t bytes)
{
	return cuGraphInstantiate_v2(exec, graph, error_node, log, bytes);
}

CU_API cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags)
{
	return instantiate(exec, graph, flags);
}

CU_API cuGraphInstantiateWithParams(void **exec, void *graph, cu_instantiate_params *params)
{
	enum { SUCCESS = 0, FAILED = 1 };
	NC_TRY(nc_init_check());
	if (!params)
		return CU_INVALID_VALUE;
	cu_result result = instantiate(exec, graph, params->flags);
	params->error_node = NULL;
	params->result = result == CU_OK ? SUCCESS : FAILED;
	return result;
}

CU_API cuGraphExecDestroy(void *handle)
{
	struct nc_exec *exec;
	NC_ENTER();
	NC_TRY(find_exec(handle, &exec));
	nc_graph_delete(exec->graph);
	nc_object_delete(exec);
	return CU_OK;
}

CU_API cuGraphExecGetFlags(void *handle, uint64_t *flags)
{
	struct nc_exec *exec;
	NC_ENTER();
	NC_TRY(find_exec(handle, &exec));
	if (!flags)
		return CU_INVALID_VALUE;
	*flags = exec->flags;
	return CU_OK;
}

CU_API cuGraphUpload(void *handle, void *stream_handle)
{
	struct nc_exec *exec;
	struct nc_stream *stream;
	NC_ENTER();
	NC_TRY(find_exec(handle, &exec));
	return nc_stream_from_handle(stream_handle, &stream);
}

// Frees what an earlier launch allocated and did not free, if asked for.
static void auto_free(struct nc_exec *exec)
{
	enum { AUTO_FREE_ON_LAUNCH = 1 };
	if (!(exec->flags & AUTO_FREE_ON_LAUNCH))
		return;
	for (struct nc_node *node = exec->graph->first; node; node = node->next) {
		struct nc_range *range = node->work.type == NC_NODE_ALLOC ? nc_range_based(node->work.alloc.address) : NULL;
		if (range)
			nc_memory_release(range);
	}
}

CU_API cuGraphLaunch(void *handle, void *stream_handle)
{
	struct nc_exec *exec;
	struct nc_stream *stream;
	bool captured;
	NC_TRY(nc_init_check());
	pthread_mutex_lock(&nc_lock);
	cu_result result = find_exec(handle, &exec);
	if (result == CU_OK)
		result = nc_stream_from_handle(stream_handle, &stream);
	if (result == CU_OK) {
		const struct nc_work work = {.type = NC_NODE_CHILD, .child = exec->graph};
		result = nc_capture_node(stream, &work, &captured);
	}
	if (result == CU_OK && !captured)
		auto_free(exec);
	pthread_mutex_unlock(&nc_lock);
	if (result != CU_OK || captured)
		return result;
	return nc_graph_run(exec->graph);
}

// The executable node made from a node of the original graph.
static cu_result find_target(void *handle, void *node, enum nc_node_type type, struct nc_node **target)
{
	struct nc_exec *exec;
	NC_TRY(find_exec(handle, &exec));
	*target = nc_graph_counterpart(exec->graph, node);
	return *target && (*target)->work.type == type ? CU_OK : CU_INVALID_VALUE;
}

static cu_result set_params(void *exec, void *node, enum nc_node_type type, const void *in, size_t bytes)
{
	struct nc_node *target;
	NC_ENTER();
	NC_TRY(find_target(exec, node, type, &target));
	if (!in)
		return CU_INVALID_VALUE;
	memcpy(&target->work.kernel, in, bytes); // every member of the union starts here
	return CU_OK;
}

CU_API cuGraphExecKernelNodeSetParams(void *exec, void *node, const void *in)
{
	return set_params(exec, node, NC_NODE_KERNEL, in, offsetof(cu_kernel_node, kernel));
}

CU_API cuGraphExecKernelNodeSetParams_v2(void *exec, void *node, const void *in)
{
	return set_params(exec, node, NC_NODE_KERNEL, in, sizeof(cu_kernel_node));
}

CU_API cuGraphExecMemcpyNodeSetParams(void *exec, void *node, const void *in, void *context)
{
	(void)context;
	return set_params(exec, node, NC_NODE_COPY, in, sizeof(cu_copy3d));
}

CU_API cuGraphExecMemsetNodeSetParams(void *exec, void *node, const void *in, void *context)
{
	(void)context;
	return set_params(exec, node, NC_NODE_FILL, in, offsetof(cu_memset_node, context));
}

CU_API cuGraphExecHostNodeSetParams(void *exec, void *node, const void *in)
{
	return set_params(exec, node, NC_NODE_HOST, in, sizeof(cu_host_node));
}

CU_API cuGraphNodeSetEnabled(void *handle, void *node, unsigned enabled)
{
	struct nc_exec *exec;
	NC_ENTER();
	NC_TRY(find_exec(handle, &exec));
	struct nc_node *target = nc_graph_counterpart(exec->graph, node);
	if (!target || target->work.type > NC_NODE_FILL)
		return CU_INVALID_VALUE;
	target->enabled = enabled != 0;
	return CU_OK;
}

CU_API cuGraphNodeGetEnabled(void *handle, void *node, unsigned *enabled)
{
	struct nc_exec *exec;
	NC_ENTER();
	NC_TRY(find_exec(handle, &exec));
	struct nc_node *target = nc_graph_counterpart(exec->graph, node);
	if (!target || !enabled)
		return CU_INVALID_VALUE;
	*enabled = target->enabled;
	return CU_OK;
}

// Replaces the executable copy when the graph has the same shape: the same types
// in the same order.
static cu_result update(struct nc_exec *exec, struct nc_graph *graph)
{
	struct nc_graph *copy;
	NC_TRY(nc_graph_clone(graph, &copy));
	cu_result result = nc_graph_order(copy);
	struct nc_node *old = exec->graph->first, *new = copy->first;
	for (; result == CU_OK && old && new; old = old->next, new = new->next)
		if (old->work.type != new->work.type || old->dependency_count != new->dependency_count)
			break;
	if (result == CU_OK && (old || new))
		result = CU_GRAPH_EXEC_UPDATE_FAILURE;
	if (result != CU_OK) {
		nc_graph_delete(copy);
		return result;
	}
	// Nodes of the original graph go on naming their counterparts.
	for (old = exec->graph->first, new = copy->first; old; old = old->next, new = new->next)
		new->original = old->original;
	copy->child = true;
	nc_graph_delete(exec->graph);
	exec->graph = copy;
	return CU_OK;
}

CU_API cuGraphExecUpdate_v2(void *handle, void *graph_handle, cu_update_result *out)
{
	enum { SUCCESS = 0, TOPOLOGY_CHANGED = 2 };
	struct nc_exec *exec;
	NC_ENTER();
	NC_TRY(find_exec(handle, &exec));
	struct nc_graph *graph = nc_object_find(graph_handle, NC_GRAPH);
	if (!graph)
		return CU_INVALID_VALUE;
	cu_result result = update(exec, graph);
	if (out)
		*out = (cu_update_result){.result = result == CU_OK ? SUCCESS : TOPOLOGY_CHANGED};
	return result;
}

CU_API cuGraphExecUpdate(void *exec, void *graph, void **error_node, int *update_result)
{
	cu_update_result out = {0};
	cu_result result = cuGraphExecUpdate_v2(exec, graph, &out);
	if (error_node)
		*error_node = NULL;
	if (update_result)
		*update_result = out.result;
	return result;
}
