/* The runtime's calls. Each leads to a driver call, which is the event: its runtime name is what is added. */
#include <stdio.h>
#include <unistd.h>

#include "cover.h"

enum { NO_MEMORY = 2, TO_DEVICE = 1 };

static void plain(void) {
  static char own[4096] __attribute__((aligned(4096)));
  struct mt_cuda_pitched solid;
  void *a, *b, *c, *h, *g;
  size_t pitch;
  DO(cudaFree, NULL); /* starts CUDA */
  DO(cudaMalloc, &a, 1000);
  DO(cudaMalloc, &b, 0);
  DO(cudaMallocPitch, &b, &pitch, 1000, 7);
  DO(cudaMalloc3D, &solid, (struct mt_cuda_extent){100, 20, 3});
  DO(cudaMallocManaged, &c, 30000, 1);
  DO(cudaMallocHost, &h, 5000);
  DO(cudaHostAlloc, &g, 6000, 0);
  DO(cudaHostRegister, own, 3000, 0);
  FAILS(cudaMalloc, NO_MEMORY, &a, (size_t)1 << 45);
  H(cudaGetLastError)();
  DO(cudaFree, b);
  DO(cudaFree, solid.ptr);
  DO(cudaFree, c);
  DO(cudaFreeHost, h);
  DO(cudaHostUnregister, own);
  DO(cudaMallocManaged, &c, 31000, 1);
}

static void async(void) {
  void *block[5], *pool;
  DO(cudaMallocAsync, &block[0], 1500, NULL);
  DO(cudaMallocAsync_ptsz, &block[1], 2500, NULL);
  DO(cudaMemPoolCreate, &pool, &cover_pool);
  DO(cudaMallocFromPoolAsync, &block[2], 3500, pool, NULL);
  DO(cudaMallocFromPoolAsync_ptsz, &block[3], 40 * MIB, pool, NULL);
  DO(cudaFreeAsync, block[0], NULL);
  DO(cudaFreeAsync_ptsz, block[3], NULL);
  DO(cudaMemPoolTrimTo, pool, 0);
  DO(cudaFree, block[2]);
  DO(cudaMemPoolDestroy, pool);
  DO(cudaMallocAsync, &block[4], 33 * MIB, NULL);
}

static void arrays(void) {
  const struct mt_cuda_channels floats = {32, 32, 0, 0, 2}, bytes = {8, 0, 0, 0, 1};
  void *a, *b, *c, *mipmap;
  DO(cudaMallocArray, &a, &floats, 100, 30, 0);
  DO(cudaMallocArray, &b, &bytes, 1000, 0, 0);
  DO(cudaMalloc3DArray, &c, &floats, (struct mt_cuda_extent){20, 10, 5}, 0);
  DO(cudaMallocMipmappedArray, &mipmap, &bytes, (struct mt_cuda_extent){64, 32, 0}, 3, 0);
  DO(cudaFreeArray, a);
  DO(cudaFreeArray, c);
  DO(cudaFreeMipmappedArray, mipmap);
  DO(cudaMallocMipmappedArray, &mipmap, &floats, (struct mt_cuda_extent){8, 8, 2}, 2, 0);
}

static void external(void) {
  static const union {
    struct mt_cuda_external_buffer desc;
    char whole[96];
  } part = {{.offset = 4096, .size = 8192}};
  static const union {
    struct mt_cuda_external_mipmap_rt desc;
    char whole[160];
  } levels = {{.offset = 65536, .channels = {8, 0, 0, 0, 1}, .extent = {64, 64, 0}, .levels = 2}};
  void *memory, *buffer, *mipmap;
  DO(cudaImportExternalMemory, &memory, cover_make_external(MIB));
  DO(cudaExternalMemoryGetMappedBuffer, &buffer, memory, &part.desc);
  DO(cudaExternalMemoryGetMappedMipmappedArray, &mipmap, memory, &levels.desc);
  DO(cudaDestroyExternalMemory, memory);
  DO(cudaFree, buffer);
  DO(cudaFreeMipmappedArray, mipmap);
}

static void imports(void) {
  const struct cover_offer *o = cover_peer_offer();
  void *a, *again, *pool;
  DO(cudaIpcOpenMemHandle, &a, o->device[0], 1);
  DO(cudaIpcOpenMemHandle, &again, o->device[0], 1);
  DO(cudaIpcCloseMemHandle, a);
  DO(cudaIpcCloseMemHandle, again);
  DO(cudaMemPoolImportFromShareableHandle, &pool, (void *)(intptr_t)o->pool, 1, 0);
  DO(cudaMemPoolImportPointer, &a, pool, (void *)o->block);
  DO(cudaFreeAsync, a, NULL);
  DO(cudaMemPoolDestroy, pool);
  close(o->memory);
  close(o->team);
  close(o->pool);
}

static void run(void *graph) {
  void *exec;
  HELP(cudaGraphInstantiateWithFlags, &exec, graph, 0ull);
  HELP(cudaGraphLaunch, exec, NULL);
  HELP(cudaGraphExecDestroy, exec);
  HELP(cudaGraphDestroy, graph);
}

static void graph_by_kind(void) {
  struct mt_cuda_alloc_node alloc = {.pool = cover_pool, .size = 1000};
  void *graph, *first, *last;
  HELP(cudaGraphCreate, &graph, 0);
  DO(cudaGraphAddMemAllocNode, &first, graph, NULL, 0, &alloc);
  DO(cudaGraphAddMemFreeNode, &last, graph, &first, 1, (void *)alloc.address);
  run(graph);
}

/* One function for nodes of all kinds: since CUDA 12, with other arguments in 13. */
static void graph_by_parameters(int version) {
  union {
    struct mt_cuda_node head;
    char whole[256];
  } alloc = {{.type = 10, .alloc = {.pool = {.type = 1, .location_type = 1}, .size = 5 * MIB}}}, end = {{.type = 11}};
  void *graph, *first, *last;
  HELP(cudaGraphCreate, &graph, 0);
  if (version >= 13000) {
    DO(cudaGraphAddNode, &first, graph, NULL, NULL, (void *)0, &alloc);
    end.head.freed = alloc.head.alloc.address;
    DO(cudaGraphAddNode, &last, graph, &first, NULL, (void *)1, &end);
  } else {
    DO(cudaGraphAddNode, &first, graph, NULL, (void *)0, &alloc, NULL);
    end.head.freed = alloc.head.alloc.address;
    DO(cudaGraphAddNode_v2, &last, graph, &first, NULL, (void *)1, &end);
  }
  run(graph);
}

/* What is asked changes no memory. */
static void answers(void) {
  size_t bytes, all;
  void *event;
  DO(cudaMemGetInfo, &bytes, &all);
  HELP(cudaEventCreateWithFlags, &event, 2);
  DO(cudaEventRecord, event, NULL);
  DO(cudaEventRecord_ptsz, event, NULL);
  DO(cudaEventQuery, event);
  DO(cudaEventSynchronize, event);
  HELP(cudaEventDestroy, event);
}

void cover_runtime(int version) {
  plain();
  async();
  arrays();
  external();
  imports();
  graph_by_kind();
  answers();
  if (version >= 12000) graph_by_parameters(version);
  DO(cudaDeviceGraphMemTrim, 0);
  DO(cudaDeviceReset);
  plain();
  if (version < 13000) {
    DO(cudaThreadExit);
    plain();
  }
}
