// Graphs: nodes of work with dependencies, and executable copies of them.
#ifndef NULLCUDA_GRAPH_H
#define NULLCUDA_GRAPH_H

#include "object.h"
#include "range.h"

enum nc_node_type {
	NC_NODE_KERNEL = 0,
	NC_NODE_COPY = 1,
	NC_NODE_FILL = 2,
	NC_NODE_HOST = 3,
	NC_NODE_CHILD = 4,
	NC_NODE_EMPTY = 5,
	NC_NODE_WAIT_EVENT = 6,
	NC_NODE_RECORD_EVENT = 7,
	NC_NODE_ALLOC = 10,
	NC_NODE_FREE = 11,
};

// What a node does. Kernels do nothing but are kept, as their parameters can be
// asked for.
struct nc_work {
	enum nc_node_type type;
	union {
		cu_kernel_node kernel;
		cu_copy3d copy;
		cu_memset_node fill;
		cu_host_node host;
		cu_alloc_node alloc; // the address is fixed when the node is made
		cu_ptr free_address;
		void *event;
		struct nc_graph *child; // owned by the node
	};
};

struct nc_graph {
	struct nc_object object;
	struct nc_node *first, *last; // in the order of their making
	size_t node_count;
	uint64_t id;
	struct nc_graph *original; // NULL unless a clone
	unsigned captures;         // streams that capture into it
	bool capturing;            // not yet handed to the program
	bool child;                // belongs to a node
};

struct nc_node {
	struct nc_object object;
	struct nc_node *next;
	struct nc_graph *graph;
	struct nc_work work;
	struct nc_node **dependencies;
	size_t dependency_count;
	struct nc_node *original; // the node it was cloned from
	struct nc_node *copy;     // scratch of cloning: the latest clone of this node
	bool enabled;
	unsigned mark; // scratch of the ordering
};

// All with nc_lock held. NULL and CU_OUT_OF_MEMORY mean host memory is short.
struct nc_graph *nc_graph_new(void);
void nc_graph_delete(struct nc_graph *graph);

// Adds a node that depends on the given ones. A child graph in `work` is copied.
cu_result nc_graph_add(struct nc_graph *graph, void *const *dependencies, size_t count, const struct nc_work *work,
                       struct nc_node **out);

// A copy of the whole graph, child graphs included.
cu_result nc_graph_clone(struct nc_graph *graph, struct nc_graph **out);

// The clone's node that was made from this one, or NULL.
struct nc_node *nc_graph_counterpart(struct nc_graph *clone, const struct nc_node *original);

// Takes the node out of its graph and deletes it. No node depends on it any more.
void nc_graph_remove(struct nc_node *node);

// Moves the nodes into an order in which every node follows its dependencies.
// CU_INVALID_VALUE when they form a cycle.
cu_result nc_graph_order(struct nc_graph *graph);

// Runs the nodes in order, without nc_lock.
cu_result nc_graph_run(struct nc_graph *graph);

#endif
