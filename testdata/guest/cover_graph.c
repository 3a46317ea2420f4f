/* Memory that graphs allocate, by nodes of their own and by captured calls. */
#include "cover.h"

enum { ALLOC = 10, FREE = 11 };

/* A node's parameters in their whole length. */
union node {
  struct mt_cuda_node head;
  char whole[256];
};

static void *new_graph(void) {
  void *graph;
  HELP(cuGraphCreate, &graph, 0);
  return graph;
}

static void *instantiate(void *graph) {
  void *exec;
  HELP(cuGraphInstantiateWithFlags, &exec, graph, 0ull);
  return exec;
}

static union node alloc_node(size_t size) {
  return (union node){{.type = ALLOC, .alloc = {.pool = {.type = 1, .location_type = 1}, .size = size}}};
}
static union node free_node(uint64_t address) { return (union node){{.type = FREE, .freed = address}}; }

/* A graph that frees what it allocates may run again and again. */
static void whole_cycle(void) {
  struct mt_cuda_alloc_node alloc = {.pool = cover_pool, .size = 3 * MIB};
  void *graph = new_graph(), *first, *last;
  DO(cuGraphAddMemAllocNode, &first, graph, NULL, 0, &alloc);
  DO(cuGraphAddMemFreeNode, &last, graph, &first, 1, alloc.address);
  void *exec = instantiate(graph);
  DO(cuGraphLaunch, exec, NULL);
  DO(cuGraphLaunch_ptsz, exec, NULL);
  DO(cuGraphExecDestroy, exec);
  DO(cuGraphDestroy, graph);
}

/* What a graph leaves allocated is freed outside, or by another graph. */
static void left_allocated(void) {
  union node a = alloc_node(1000), b = alloc_node(5 * MIB), c = alloc_node(7000), end;
  void *graph = new_graph(), *other = new_graph(), *node;
  DO(cuGraphAddNode, &node, graph, NULL, 0, &a.head);
  DO(cuGraphAddNode_v2, &node, graph, NULL, NULL, 0, &b.head);
  DO(cuGraphAddNode_v3, &node, graph, NULL, NULL, 0, &c.head);
  void *exec = instantiate(graph);
  DO(cuGraphLaunch, exec, NULL);
  DO(cuMemFreeAsync, a.head.alloc.address, NULL);
  DO(cuMemFree_v2, b.head.alloc.address);
  end = free_node(c.head.alloc.address);
  DO(cuGraphAddNode, &node, other, NULL, 0, &end.head);
  void *second = instantiate(other);
  DO(cuGraphLaunch, second, NULL);
  DO(cuGraphLaunch, exec, NULL); /* and again */
  DO(cuMemFreeAsync, a.head.alloc.address, NULL);
  DO(cuMemFreeAsync, b.head.alloc.address, NULL);
  DO(cuMemFreeAsync, c.head.alloc.address, NULL);
  DO(cuGraphExecDestroy, exec);
  DO(cuGraphExecDestroy, second);
  DO(cuGraphDestroy, graph);
  DO(cuGraphDestroy, other);
}

void cover_graphs(void) {
  whole_cycle();
  left_allocated();
  DO(cuDeviceGraphMemTrim, 0);
}

static void captured(void *stream, size_t size, int per_thread) {
  uint64_t a;
  if (per_thread) {
    DO(cuMemAllocAsync_ptsz, &a, size, stream);
    DO(cuMemFreeAsync_ptsz, a, stream);
  } else {
    DO(cuMemAllocAsync, &a, size, stream);
    DO(cuMemFreeAsync, a, stream);
  }
}

static void run_captured(void *graph) {
  void *exec = instantiate(graph);
  DO(cuGraphLaunch, exec, NULL);
  DO(cuGraphExecDestroy, exec);
  DO(cuGraphDestroy, graph);
}

void cover_captures(void) {
  void *stream, *graph;
  HELP(cuStreamCreate, &stream, 1);
  DO(cuStreamBeginCapture, stream);
  captured(stream, 1100, 0);
  DO(cuStreamEndCapture, stream, &graph);
  run_captured(graph);
  DO(cuStreamBeginCapture_ptsz, stream);
  captured(stream, 1200, 1);
  DO(cuStreamEndCapture_ptsz, stream, &graph);
  run_captured(graph);
  DO(cuStreamBeginCapture_v2, stream, 1);
  captured(stream, 1300, 0);
  DO(cuStreamEndCapture, stream, &graph);
  run_captured(graph);
  DO(cuStreamBeginCapture_v2_ptsz, stream, 2);
  captured(stream, 1400, 1);
  DO(cuStreamEndCapture, stream, &graph);
  run_captured(graph);
  graph = new_graph();
  DO(cuStreamBeginCaptureToGraph, stream, graph, NULL, NULL, 0, 0);
  captured(stream, 1500, 0);
  DO(cuStreamEndCapture, stream, &graph);
  DO(cuStreamBeginCaptureToGraph_ptsz, stream, graph, NULL, NULL, 0, 0);
  captured(stream, 1600, 1);
  DO(cuStreamEndCapture_ptsz, stream, &graph);
  run_captured(graph);
  uint64_t outside;
  DO(cuMemAllocAsync, &outside, 1700, stream); /* not captured any more */
  DO(cuMemFreeAsync, outside, stream);
  DO(cuDeviceGraphMemTrim, 0);
}
