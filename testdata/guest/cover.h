/* What the parts of cover share: every hooked function by its row of hooks.def, called through the route under test. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "abi.h"

/* The types of wrappers that are written by hand; the other rows say theirs. */
typedef int cover_tiles(struct mt_cuda_tiles *, unsigned, void *);
typedef int cover_handle(void *);
typedef int cover_context(uint64_t);
typedef int cover_device(int);
typedef int cover_none(void);
typedef int cover_begin(void *);
typedef int cover_begin_mode(void *, int);
typedef int cover_begin_to(void *, void *, const void *, const void *, size_t, int);
typedef int cover_end(void *, void **);
typedef int cover_run(void *, void *);
typedef int cover_node(void **, void *, const void *, size_t, struct mt_cuda_node *);
typedef int cover_node_edges(void **, void *, const void *, const void *, size_t, struct mt_cuda_node *);
typedef cover_tiles cover_cuMemMapArrayAsync, cover_cuMemMapArrayAsync_ptsz;
typedef cover_handle cover_cuGraphDestroy, cover_cuGraphExecDestroy;
typedef cover_context cover_cuCtxDestroy, cover_cuCtxDestroy_v2, cover_cuCtxDetach;
typedef cover_device cover_cuDevicePrimaryCtxRelease, cover_cuDevicePrimaryCtxRelease_v2, cover_cuDevicePrimaryCtxReset, cover_cuDevicePrimaryCtxReset_v2, cover_cuDeviceGraphMemTrim;
typedef cover_none cover_cudaDeviceReset, cover_cudaThreadExit;
typedef cover_begin cover_cuStreamBeginCapture, cover_cuStreamBeginCapture_ptsz;
typedef cover_begin_mode cover_cuStreamBeginCapture_v2, cover_cuStreamBeginCapture_v2_ptsz;
typedef cover_begin_to cover_cuStreamBeginCaptureToGraph, cover_cuStreamBeginCaptureToGraph_ptsz;
typedef cover_end cover_cuStreamEndCapture, cover_cuStreamEndCapture_ptsz;
typedef cover_run cover_cuGraphLaunch, cover_cuGraphLaunch_ptsz;
typedef cover_node cover_cuGraphAddNode;
typedef cover_node_edges cover_cuGraphAddNode_v2, cover_cuGraphAddNode_v3;
typedef int cover_cuGraphAddMemAllocNode(void **, void *, const void *, size_t, struct mt_cuda_alloc_node *);
typedef int cover_cuMemPoolTrimTo(uint64_t, size_t);
typedef int cover_cuDevicePrimaryCtxRetain(uint64_t *, int);
typedef int cover_cuCtxCreate(uint64_t *, unsigned, int);
typedef int cover_cuCtxCreate_v2(uint64_t *, unsigned, int);
typedef int cover_cuCtxCreate_v3(uint64_t *, void *, int, unsigned, int);
typedef int cover_cuCtxCreate_v4(uint64_t *, void *, unsigned, int);
typedef int cover_cuCtxFromGreenCtx(uint64_t *, void *);

#define MT_HOOK(number, level, symbol, base, version, variant, op, what, where, params, ...) typedef int cover_##symbol params;
#define MT_CUSTOM(...)
#define MT_REPORT(...)
#include "hooks.def"
#undef MT_HOOK
#undef MT_CUSTOM

#define MT_HOOK(number, level, symbol, ...) COVER_##symbol,
#define MT_CUSTOM MT_HOOK
enum cover_id {
#include "hooks.def"
  COVER_COUNT
};
#undef MT_HOOK
#undef MT_CUSTOM
#undef MT_REPORT

/* The function of a row by the route under test; counted as called. A row that the route does not reach ends the program. */
void *cover_function(enum cover_id id);

/* A function of the driver that is not hooked, by its exported name. Integers wider than int must be passed as such. */
int (*cover_helper(const char *name))();
#define H(name) cover_helper(#name)

/* Prints what was called and its status; anything but the wanted status fails the program. */
int cover_status(const char *what, int status, int wanted);
#define FAILS(symbol, wanted, ...) cover_status(#symbol, ((cover_##symbol *)cover_function(COVER_##symbol))(__VA_ARGS__), wanted)
#define DO(symbol, ...) FAILS(symbol, 0, __VA_ARGS__)
#define HELP(symbol, ...) cover_status(#symbol, H(symbol)(__VA_ARGS__), 0)

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* Memory that another process shares, received from it before this one starts CUDA's work on it. */
struct cover_offer {
  struct mt_cuda_ipc device[2]; /* 12345 bytes, 3 MiB */
  char block[64];               /* 5000 bytes of the pool */
  int memory, team, pool;       /* descriptors: 4 MiB of cuMemCreate, a multicast object of 2 MiB, the pool */
};
void cover_peer_start(void (*begin)(void));
const struct cover_offer *cover_peer_offer(void);
void cover_peer_end(void);

/* The parts; each begins and ends with the primary context of device 0 current. Some leave memory behind on purpose. */
void cover_plain(void);
void cover_async(void);
void cover_arrays(void);
void cover_external(void);
void cover_handles(void);
void cover_multicast(void);
void cover_tiled(void);
void cover_imports(void);
void cover_graphs(void);
void cover_captures(void);
void cover_code(void);
void cover_contexts(void);
void cover_green(void);
void cover_primary(void);
void cover_runtime(int version);

extern const struct mt_cuda_pool_props cover_pool;       /* pinned memory of device 0 */
extern const struct mt_cuda_pool_props cover_pool_share; /* the same, to be exported by descriptor */
void *cover_make_external(size_t size); /* a descriptor of another API's memory, for the two import calls; owned by cover */
