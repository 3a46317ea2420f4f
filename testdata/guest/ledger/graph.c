/* Memory that graphs allocate. The account has what nodes ask for: from the making of a node to the first free of what
 * it allocates, in the graph or outside, or to the end of the graph. The memory itself comes with a launch. */
#include <string.h>

#include "ledger.h"

enum { NODES = 4, EXECS = 3, ALLOC = 10, FREE = 11, AUTO_FREE = 1 };

/* A node's parameters in their whole length. */
union node {
  struct mt_cuda_node head;
  char whole[256];
};

struct graph {
  void *graph, *exec[EXECS];
  void *last; /* node */
  uint64_t at[NODES];
  int nodes, device;
  bool inside[NODES];  /* freed by a node: never there after a launch */
  bool there[NODES];   /* allocated by a launch and not yet freed */
  bool automatic[EXECS];
};

static void make(struct actor *a, struct slot *s) {
  struct graph *own = OWN(graph, s);
  own->device = (int)pick(a, (unsigned)devices);
  enter(a, primary_of(own->device));
  HELP(cuGraphCreate(&own->graph, 0));
}

/* Each of the functions that add one, of both halves. */
static void add_alloc(struct actor *a, struct slot *s, struct mt_cuda_alloc_node *alloc) {
  struct graph *own = OWN(graph, s);
  union node node = {.head = {.type = ALLOC, .alloc = *alloc}};
  void **before = own->last ? &own->last : NULL, *made;
  size_t count = own->last != NULL;
  bool one = HAS(cudaGraphAddNode);
  switch (pick(a, one ? 6 : 5)) {
    case 0: DO(a, cuGraphAddMemAllocNode, &made, own->graph, before, count, alloc); node.head.alloc = *alloc; break;
    case 1: DO(a, cuGraphAddNode, &made, own->graph, before, count, &node.head); break;
    case 2: DO(a, cuGraphAddNode_v2, &made, own->graph, before, NULL, count, &node.head); break;
    case 3: DO(a, cuGraphAddNode_v3, &made, own->graph, before, NULL, count, &node.head); break;
    case 4: DO(a, cudaGraphAddMemAllocNode, &made, own->graph, before, count, alloc); node.head.alloc = *alloc; break;
    default:
      if (runtime_version() >= 13000)
        DO(a, cudaGraphAddNode, (void *)&made, own->graph, before, NULL, (void *)count, &node);
      else if (one_in(a, 2)) DO(a, cudaGraphAddNode, (void *)&made, own->graph, before, (void *)count, &node, NULL);
      else DO(a, cudaGraphAddNode_v2, (void *)&made, own->graph, before, NULL, (void *)count, &node);
  }
  own->last = made;
  own->at[own->nodes++] = node.head.alloc.address;
}

static void add_free(struct actor *a, struct slot *s, int which) {
  struct graph *own = OWN(graph, s);
  union node node = {.head = {.type = FREE, .freed = own->at[which]}};
  void **before = own->last ? &own->last : NULL, *made;
  size_t count = own->last != NULL;
  own->inside[which] = true;
  lose(a, s, which);
  switch (pick(a, 5)) {
    case 0: DO(a, cuGraphAddMemFreeNode, &made, own->graph, before, count, own->at[which]); break;
    case 1: DO(a, cuGraphAddNode, &made, own->graph, before, count, &node.head); break;
    case 2: DO(a, cuGraphAddNode_v2, &made, own->graph, before, NULL, count, &node.head); break;
    case 3: DO(a, cuGraphAddNode_v3, &made, own->graph, before, NULL, count, &node.head); break;
    default: DO(a, cudaGraphAddMemFreeNode, &made, own->graph, before, count, (void *)own->at[which]);
  }
  own->last = made;
}

static void build(struct actor *a, struct slot *s) {
  struct graph *own = OWN(graph, s);
  int which = own->nodes ? (int)pick(a, (unsigned)own->nodes) : 0;
  if (own->nodes < NODES && one_in(a, 2)) {
    int device = one_in(a, 3) ? (int)pick(a, (unsigned)devices) : own->device;
    struct mt_cuda_alloc_node alloc = {.pool = pool_on(device, 0), .size = any_size(a)};
    gain(a, s, own->nodes, GRAPH, device, alloc.size, NO_CONTEXT);
    add_alloc(a, s, &alloc);
  } else if (own->nodes && s->hold[which].live && !own->inside[which]) {
    add_free(a, s, which);
  }
}

/* What a launch left is freed outside. The first time ends what the account has of the node. */
static void free_outside(struct actor *a, struct slot *s, int which) {
  struct graph *own = OWN(graph, s);
  own->there[which] = false;
  if (s->hold[which].live) lose(a, s, which);
  switch (pick(a, 4)) {
    case 0: DO(a, cuMemFreeAsync, own->at[which], NULL); break;
    case 1: DO(a, cudaFreeAsync, (void *)own->at[which], NULL); break;
    case 2: DO(a, cuMemFree_v2, own->at[which]); break;
    default: DO(a, cudaFree, (void *)own->at[which]);
  }
}

static bool may_launch(const struct graph *own, int exec) {
  for (int i = 0; i < own->nodes; i++)
    if (own->there[i] && !own->automatic[exec]) return false;
  return true;
}

static void run(struct actor *a, struct slot *s, int exec) {
  struct graph *own = OWN(graph, s);
  if (!may_launch(own, exec)) return;
  void *stream = any_stream(a, primary_of(own->device));
  if (one_in(a, 2)) DO(a, cuGraphLaunch, own->exec[exec], stream);
  else DO(a, cuGraphLaunch_ptsz, own->exec[exec], stream);
  for (int i = 0; i < own->nodes; i++) own->there[i] = !own->inside[i];
}

static void trim(struct actor *a) {
  int device = (int)pick(a, (unsigned)devices);
  if (one_in(a, 2)) DO(a, cuDeviceGraphMemTrim, device);
  else DO(a, cudaDeviceGraphMemTrim, device);
}

/* The graph may end before what it allocated, and while executable copies of it are there. */
static void end_graph(struct actor *a, struct slot *s) {
  struct graph *own = OWN(graph, s);
  for (int i = 0; i < own->nodes; i++)
    if (s->hold[i].live) lose(a, s, i);
  DO(a, cuGraphDestroy, own->graph);
  own->graph = NULL;
}

static bool none_there(const struct graph *own) {
  for (int i = 0; i < NODES; i++)
    if (own->there[i]) return false;
  return true;
}

/* Once it can be launched, it is not added to. */
static bool step(struct actor *a, struct slot *s) {
  struct graph *own = OWN(graph, s);
  int exec = (int)pick(a, EXECS), which = (int)pick(a, NODES);
  bool fixed = own->exec[0] || own->exec[1] || own->exec[2];
  enter_runtime(enter(a, primary_of(own->device)));
  if (own->there[which] && (a->draining || one_in(a, 2))) {
    free_outside(a, s, which);
  } else if (own->exec[exec] && (a->draining || one_in(a, 4))) {
    DO(a, cuGraphExecDestroy, own->exec[exec]); /* what it allocated stays */
    own->exec[exec] = NULL;
  } else if (own->exec[exec]) {
    run(a, s, exec);
  } else if (own->graph && (a->draining || one_in(a, 8))) {
    end_graph(a, s);
  } else if (own->graph && !fixed && none_there(own) && one_in(a, 2)) {
    build(a, s);
  } else if (own->graph && own->nodes) {
    own->automatic[exec] = one_in(a, 2);
    HELP(cuGraphInstantiateWithFlags(&own->exec[exec], own->graph, own->automatic[exec] ? AUTO_FREE : 0));
  } else if (one_in(a, 2)) {
    trim(a);
  }
  return !own->graph && !own->exec[0] && !own->exec[1] && !own->exec[2] && none_there(own);
}

const struct kind graphed = {"graph", 10, make, step, NULL, NULL};

/* What is allocated while a stream is captured becomes a node of the graph. The stream is the slot's own, and so nobody
 * else's calls get into the capture. */
static void begin(struct actor *a, void *stream, void *graph) {
  switch (pick(a, graph ? 2 : 4)) {
    case 0:
      graph ? DO(a, cuStreamBeginCaptureToGraph, stream, graph, NULL, NULL, 0, 0) : DO(a, cuStreamBeginCapture, stream);
      break;
    case 1:
      graph ? DO(a, cuStreamBeginCaptureToGraph_ptsz, stream, graph, NULL, NULL, 0, 0)
            : DO(a, cuStreamBeginCapture_ptsz, stream);
      break;
    case 2: DO(a, cuStreamBeginCapture_v2, stream, (int)pick(a, 3)); break;
    default: DO(a, cuStreamBeginCapture_v2_ptsz, stream, (int)pick(a, 3));
  }
}

static void allocate(struct actor *a, struct slot *s, void *stream) {
  struct graph *own = OWN(graph, s);
  size_t size = any_size(a);
  uint64_t *at = &own->at[own->nodes];
  gain(a, s, own->nodes++, GRAPH, own->device, size, NO_CONTEXT);
  switch (pick(a, 4)) {
    case 0: DO(a, cuMemAllocAsync, at, size, stream); break;
    case 1: DO(a, cuMemAllocAsync_ptsz, at, size, stream); break;
    case 2: DO(a, cudaMallocAsync, (void **)at, size, stream); break;
    default: DO(a, cudaMallocAsync_ptsz, (void **)at, size, stream);
  }
}

static void make_captured(struct actor *a, struct slot *s) {
  struct graph *own = OWN(graph, s);
  void *stream, *given = NULL;
  own->device = (int)pick(a, (unsigned)devices);
  enter_runtime(enter(a, primary_of(own->device)));
  HELP(cuStreamCreate(&stream, 1));
  if (one_in(a, 2)) HELP(cuGraphCreate(&given, 0));
  begin(a, stream, given);
  for (int rounds = 1 + (int)pick(a, NODES - 1); rounds; rounds--) {
    allocate(a, s, stream);
    if (one_in(a, 2)) continue;
    own->inside[own->nodes - 1] = true;
    lose(a, s, own->nodes - 1);
    if (one_in(a, 2)) DO(a, cuMemFreeAsync, own->at[own->nodes - 1], stream);
    else DO(a, cuMemFreeAsync_ptsz, own->at[own->nodes - 1], stream);
  }
  if (one_in(a, 2)) DO(a, cuStreamEndCapture, stream, &own->graph);
  else DO(a, cuStreamEndCapture_ptsz, stream, &own->graph);
  HELP(cuStreamDestroy_v2(stream));
  HELP(cuGraphInstantiateWithFlags(&own->exec[0], own->graph, 0));
}

const struct kind captured = {"captured", 6, make_captured, step, NULL, NULL};
