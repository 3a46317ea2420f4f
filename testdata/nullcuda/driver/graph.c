#include "graph.h"
#include "copy.h"
#include "graph_memory.h"
#include "memory.h"

#include <stdlib.h>

enum { NODE_LIMIT = 1 << 24 };
static uint64_t last_graph_id;

struct nc_graph *nc_graph_new(void)
{
	struct nc_graph *graph = nc_object_new(NC_GRAPH, sizeof *graph, NULL);
	if (graph)
		graph->id = ++last_graph_id;
	return graph;
}

static void node_delete(struct nc_node *node)
{
	if (node->work.type == NC_NODE_CHILD && node->work.child)
		nc_graph_delete(node->work.child);
	free(node->dependencies);
	nc_object_delete(node);
}

void nc_graph_delete(struct nc_graph *graph)
{
	for (struct nc_node *node = graph->first, *next; node; node = next) {
		next = node->next;
		node_delete(node);
	}
	nc_object_delete(graph);
}

// Finds the nodes that the handles name. CU_INVALID_VALUE when one is not a node
// of this graph.
static cu_result find_dependencies(struct nc_graph *graph, void *const *handles, size_t count, struct nc_node ***out)
{
	*out = NULL;
	if (!count)
		return CU_OK;
	if (!handles || count > graph->node_count)
		return CU_INVALID_VALUE;
	struct nc_node **found = calloc(count, sizeof *found);
	if (!found)
		return CU_OUT_OF_MEMORY;
	for (size_t i = 0; i < count; i++) {
		found[i] = nc_object_find(handles[i], NC_NODE);
		if (!found[i] || found[i]->graph != graph) {
			free(found);
			return CU_INVALID_VALUE;
		}
	}
	*out = found;
	return CU_OK;
}

cu_result nc_graph_add(struct nc_graph *graph, void *const *dependencies, size_t count, const struct nc_work *work,
                       struct nc_node **out)
{
	struct nc_node **found;
	if (graph->node_count >= NODE_LIMIT)
		return CU_OUT_OF_MEMORY;
	NC_TRY(find_dependencies(graph, dependencies, count, &found));
	struct nc_node *node = nc_object_new(NC_NODE, sizeof *node, NULL);
	if (!node) {
		free(found);
		return CU_OUT_OF_MEMORY;
	}
	node->graph = graph;
	node->work = *work;
	node->dependencies = found;
	node->dependency_count = count;
	node->enabled = true;
	if (work->type == NC_NODE_CHILD) {
		cu_result result = nc_graph_clone(work->child, &node->work.child);
		if (result != CU_OK) {
			node->work.child = NULL;
			node_delete(node);
			return result;
		}
		node->work.child->child = true;
	}
	*(graph->last ? &graph->last->next : &graph->first) = node;
	graph->last = node;
	graph->node_count++;
	*out = node;
	return CU_OK;
}

static cu_result copy_dependencies(struct nc_node *node)
{
	const struct nc_node *original = node->original;
	if (!original->dependency_count)
		return CU_OK;
	node->dependencies = calloc(original->dependency_count, sizeof *node->dependencies);
	if (!node->dependencies)
		return CU_OUT_OF_MEMORY;
	node->dependency_count = original->dependency_count;
	for (size_t i = 0; i < node->dependency_count; i++)
		node->dependencies[i] = original->dependencies[i]->copy;
	return CU_OK;
}

cu_result nc_graph_clone(struct nc_graph *graph, struct nc_graph **out)
{
	cu_result result = CU_OK;
	struct nc_graph *clone = nc_graph_new();
	if (!clone)
		return CU_OUT_OF_MEMORY;
	clone->original = graph;
	for (struct nc_node *node = graph->first, *copy; node && result == CU_OK; node = node->next) {
		result = nc_graph_add(clone, NULL, 0, &node->work, &copy);
		if (result == CU_OK) {
			copy->original = node;
			node->copy = copy;
			copy->enabled = node->enabled;
		}
	}
	// After the nodes: a dependency may come later in the list than its user.
	for (struct nc_node *node = clone->first; node && result == CU_OK; node = node->next)
		result = copy_dependencies(node);
	if (result != CU_OK)
		nc_graph_delete(clone);
	else
		*out = clone;
	return result;
}

struct nc_node *nc_graph_counterpart(struct nc_graph *clone, const struct nc_node *original)
{
	struct nc_node *node = clone->first;
	while (node && node->original != original)
		node = node->next;
	return node;
}

void nc_graph_remove(struct nc_node *node)
{
	struct nc_graph *graph = node->graph;
	struct nc_node **link = &graph->first, *before = NULL;
	while (*link != node) {
		before = *link;
		link = &before->next;
	}
	*link = node->next;
	if (graph->last == node)
		graph->last = before;
	graph->node_count--;
	node_delete(node);
}

cu_result nc_graph_order(struct nc_graph *graph)
{
	struct nc_node *waiting = graph->first, **tail = &graph->first;
	for (struct nc_node *node = waiting; node; node = node->next)
		node->mark = 0;
	graph->first = graph->last = NULL;
	// Passes over what is left; nodes mostly come in order, so one pass is the rule.
	bool progress = true;
	while (waiting && progress) {
		progress = false;
		for (struct nc_node **link = &waiting, *node; (node = *link);) {
			bool ready = true;
			for (size_t i = 0; ready && i < node->dependency_count; i++)
				ready = node->dependencies[i]->mark;
			if (!ready) {
				link = &node->next;
				continue;
			}
			*link = node->next;
			node->next = NULL;
			node->mark = 1;
			*tail = graph->last = node;
			tail = &node->next;
			progress = true;
		}
	}
	*tail = waiting; // a cycle: keep the nodes, so that the graph can be deleted
	for (struct nc_node *node = waiting; node; node = node->next)
		graph->last = node;
	return waiting ? CU_INVALID_VALUE : CU_OK;
}

static cu_result run_alloc(const cu_alloc_node *alloc)
{
	NC_LOCKED();
	return nc_graph_memory_begin(alloc->address, alloc->size);
}

static cu_result run_free(cu_ptr address)
{
	NC_LOCKED();
	struct nc_range *range = nc_range_based(address);
	if (!range || range->kind != NC_ASYNC)
		return CU_INVALID_VALUE;
	nc_memory_release(range);
	return CU_OK;
}

static cu_result run_node(const struct nc_node *node)
{
	switch (node->work.type) {
	case NC_NODE_COPY: return nc_copy_run(&node->work.copy);
	case NC_NODE_FILL: return nc_fill_run(&node->work.fill);
	case NC_NODE_HOST: node->work.host.fn(node->work.host.user); return CU_OK;
	case NC_NODE_CHILD: return nc_graph_run(node->work.child);
	case NC_NODE_ALLOC: return run_alloc(&node->work.alloc);
	case NC_NODE_FREE: return run_free(node->work.free_address);
	default: return CU_OK;
	}
}

cu_result nc_graph_run(struct nc_graph *graph)
{
	for (struct nc_node *node = graph->first; node; node = node->next)
		if (node->enabled)
			NC_TRY(run_node(node));
	return CU_OK;
}
