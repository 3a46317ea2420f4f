#define _GNU_SOURCE
#include "hooks/graph.h"

#include "hooks/hooks.h"
#include "hooks/query.h"
#include "hooks/reserve.h"

uint32_t mt_graph_capturing;
static uint32_t has_memory;

#define CU_STREAM_LEGACY 1 /* cannot be captured, and a query is an error while another stream is captured */
#define CU_STREAM_CAPTURE_STATUS_ACTIVE 1

bool mt_graph_has_memory(void) { return __atomic_load_n(&has_memory, __ATOMIC_RELAXED); }

static void note_memory(void) { __atomic_store_n(&has_memory, 1, __ATOMIC_RELAXED); }

static bool per_thread(uint16_t api) {
  switch (api) {
    case MT_ID_cuMemAllocAsync_ptsz: case MT_ID_cuMemAllocFromPoolAsync_ptsz: case MT_ID_cuMemFreeAsync_ptsz:
    case MT_ID_cudaMallocAsync_ptsz: case MT_ID_cudaMallocFromPoolAsync_ptsz: case MT_ID_cudaFreeAsync_ptsz:
      return true;
  }
  return false;
}

bool mt_graph_stream_captured(uint64_t stream, uint16_t api, uint64_t *graph) {
  bool thread = per_thread(api);
  if (stream == CU_STREAM_LEGACY || (!stream && !thread)) return false;
  int (*query)(uint64_t, int *) = mt_query_find(thread ? MT_QUERY_CAPTURING_PTSZ : MT_QUERY_CAPTURING);
  int status = 0;
  if (!query || query(stream, &status) || status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return false;
  note_memory();
  int (*which)(uint64_t, int *, uint64_t *, uint64_t *, const void *, size_t *) =
      mt_query_find(thread ? MT_QUERY_CAPTURE_PTSZ : MT_QUERY_CAPTURE);
  uint64_t id;
  *graph = 0;
  if (which && which(stream, &status, &id, graph, NULL, NULL)) *graph = 0;
  return true;
}

/* Captures begin and end; nothing is recorded. An end that the driver refuses because the capture was spoilt ends it,
 * too. */
#define MT_CAPTURE_BEGINS(symbol, params, args)                                \
  MT_HOOKED(symbol, params) {                                                  \
    MT_HOOKED_REAL(symbol);                                                    \
    int status = real args;                                                    \
    if (!status) __atomic_add_fetch(&mt_graph_capturing, 1, __ATOMIC_RELAXED); \
    return status;                                                             \
  }
MT_CAPTURE_BEGINS(cuStreamBeginCapture, (void *stream), (stream))
MT_CAPTURE_BEGINS(cuStreamBeginCapture_ptsz, (void *stream), (stream))
MT_CAPTURE_BEGINS(cuStreamBeginCapture_v2, (void *stream, int mode), (stream, mode))
MT_CAPTURE_BEGINS(cuStreamBeginCapture_v2_ptsz, (void *stream, int mode), (stream, mode))
#define MT_TO_GRAPH_PARAMS (void *stream, void *graph, const void *nodes, const void *edges, size_t count, int mode)
MT_CAPTURE_BEGINS(cuStreamBeginCaptureToGraph, MT_TO_GRAPH_PARAMS, (stream, graph, nodes, edges, count, mode))
MT_CAPTURE_BEGINS(cuStreamBeginCaptureToGraph_ptsz, MT_TO_GRAPH_PARAMS, (stream, graph, nodes, edges, count, mode))

/* A capture that is counted for too long costs a query per call; one that is missed, accuracy. */
static int capture_ended(int status) {
  enum { CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901, CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904 };
  if (status && status != CUDA_ERROR_STREAM_CAPTURE_INVALIDATED && status != CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
    return status;
  uint32_t count = __atomic_load_n(&mt_graph_capturing, __ATOMIC_RELAXED);
  while (count && !__atomic_compare_exchange_n(&mt_graph_capturing, &count, count - 1, true, __ATOMIC_RELAXED,
                                               __ATOMIC_RELAXED)) {
  }
  return status;
}

#define MT_CAPTURE_ENDS(symbol)                     \
  MT_HOOKED(symbol, (void *stream, void **graph)) { \
    MT_HOOKED_REAL(symbol);                         \
    return capture_ended(real(stream, graph));      \
  }
MT_CAPTURE_ENDS(cuStreamEndCapture)
MT_CAPTURE_ENDS(cuStreamEndCapture_ptsz)

static int alloc_added(struct mt_call *call, void *graph, const struct mt_cuda_alloc_node *node, int status) {
  note_memory();
  if (!call->self) return status;
  if (!node) return mt_driver_skip(call), status;
  mt_driver_close(call, &(struct mt_outcome){.kind = MT_ALLOC,
                                             .mem = MT_MEM_GRAPH, .addr = status ? 0 : node->address,
                                             .size = node->size, .owner = (uint64_t)graph, .status = status,
                                             .device = mt_pool_device(&node->pool)});
  return status;
}

/* Nodes of a kind that is known from the parameters only. */
static int node_added(struct mt_call *call, void *graph, const struct mt_cuda_node *node, int status) {
  int type = node ? node->type : 0;
  if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) return alloc_added(call, graph, &node->alloc, status);
  if (!call->self) return status;
  if (type != CU_GRAPH_NODE_TYPE_MEM_FREE) return mt_driver_skip(call), status;
  mt_driver_close(call,
                  &(struct mt_outcome){
                      .kind = MT_FREE, .mem = MT_MEM_GRAPH, .addr = node->freed, .status = status, .device = MT_HOST});
  return status;
}

MT_HOOKED(cuGraphAddNode, (void **out, void *graph, const void *nodes, size_t count, struct mt_cuda_node *node)) {
  MT_HOOKED_REAL(cuGraphAddNode);
  MT_HOOKED_OPEN(cuGraphAddNode, driver, 0);
  return node_added(&call, graph, node, real(out, graph, nodes, count, node));
}

#define MT_NODE_ADDED(symbol) \
  MT_HOOKED(symbol, (void **out, void *graph, const void *nodes, const void *edges, size_t count, \
                     struct mt_cuda_node *node)) { \
    MT_HOOKED_REAL(symbol); \
    MT_HOOKED_OPEN(symbol, driver, 0); \
    return node_added(&call, graph, node, real(out, graph, nodes, edges, count, node)); \
  }
MT_NODE_ADDED(cuGraphAddNode_v2)
MT_NODE_ADDED(cuGraphAddNode_v3)

MT_HOOKED(cuGraphAddMemAllocNode,
          (void **out, void *graph, const void *nodes, size_t count, struct mt_cuda_alloc_node *node)) {
  MT_HOOKED_REAL(cuGraphAddMemAllocNode);
  MT_HOOKED_OPEN(cuGraphAddMemAllocNode, driver, 0);
  return alloc_added(&call, graph, node, real(out, graph, nodes, count, node));
}

/* Launches of graphs without memory are not recorded: they are frequent. */
static int launched(struct mt_call *call, void *graph, int status) {
  if (!call->self) return status;
  mt_driver_close(
      call,
      &(struct mt_outcome){
          .kind = MT_LAUNCH, .mem = MT_OBJECT_EXEC, .addr = (uint64_t)graph, .status = status, .device = MT_CURRENT});
  if (!status) mt_reserve_graph(call->self, call->id, call->caller);
  return status;
}

#define MT_LAUNCHES(symbol)                                 \
  MT_HOOKED(symbol, (void *graph, void *stream)) {          \
    MT_HOOKED_REAL(symbol);                                 \
    if (!mt_graph_has_memory()) return real(graph, stream); \
    MT_HOOKED_OPEN(symbol, driver, 0);                      \
    return launched(&call, graph, real(graph, stream));     \
  }
MT_LAUNCHES(cuGraphLaunch)
MT_LAUNCHES(cuGraphLaunch_ptsz)

/* Likewise the end of one. */
static int destroyed(struct mt_call *call, uint8_t object, void *graph, int status) {
  if (!call->self) return status;
  mt_driver_close(call,
                  &(struct mt_outcome){
                      .kind = MT_DESTROY, .mem = object, .addr = (uint64_t)graph, .status = status, .device = MT_HOST});
  return status;
}

#define MT_GRAPH_ENDS(symbol, object)                    \
  MT_HOOKED(symbol, (void *graph)) {                     \
    MT_HOOKED_REAL(symbol);                              \
    if (!mt_graph_has_memory()) return real(graph);      \
    MT_HOOKED_OPEN(symbol, driver, 1);                   \
    return destroyed(&call, object, graph, real(graph)); \
  }
MT_GRAPH_ENDS(cuGraphDestroy, MT_OBJECT_GRAPH)
MT_GRAPH_ENDS(cuGraphExecDestroy, MT_OBJECT_EXEC)
