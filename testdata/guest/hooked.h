/* The type of every hooked function, from its row of hooks.def: HOOKED_NAME is its number, hooked_NAME its type. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hooks/abi.h"

/* The types of wrappers that are written by hand; the other rows say theirs. */
typedef int hooked_tiles(struct mt_cuda_tiles *, unsigned, void *);
typedef int hooked_handle(void *);
typedef int hooked_context(uint64_t);
typedef int hooked_device(int);
typedef int hooked_none(void);
typedef int hooked_begin(void *);
typedef int hooked_begin_mode(void *, int);
typedef int hooked_begin_to(void *, void *, const void *, const void *, size_t, int);
typedef int hooked_end(void *, void **);
typedef int hooked_run(void *, void *);
typedef int hooked_node(void **, void *, const void *, size_t, struct mt_cuda_node *);
typedef int hooked_node_edges(void **, void *, const void *, const void *, size_t, struct mt_cuda_node *);
typedef hooked_tiles hooked_cuMemMapArrayAsync, hooked_cuMemMapArrayAsync_ptsz;
typedef hooked_handle hooked_cuGraphDestroy, hooked_cuGraphExecDestroy;
typedef hooked_context hooked_cuCtxDestroy, hooked_cuCtxDestroy_v2, hooked_cuCtxDetach;
typedef hooked_device hooked_cuDevicePrimaryCtxRelease, hooked_cuDevicePrimaryCtxRelease_v2,
    hooked_cuDevicePrimaryCtxReset, hooked_cuDevicePrimaryCtxReset_v2, hooked_cuDeviceGraphMemTrim;
typedef hooked_handle hooked_cudaEventQuery, hooked_cudaEventSynchronize;
typedef hooked_run hooked_cudaEventRecord, hooked_cudaEventRecord_ptsz;
typedef int hooked_cuMemGetInfo_v2(size_t *, size_t *);
typedef hooked_none hooked_cudaDeviceReset, hooked_cudaThreadExit;
typedef hooked_begin hooked_cuStreamBeginCapture, hooked_cuStreamBeginCapture_ptsz;
typedef hooked_begin_mode hooked_cuStreamBeginCapture_v2, hooked_cuStreamBeginCapture_v2_ptsz;
typedef hooked_begin_to hooked_cuStreamBeginCaptureToGraph, hooked_cuStreamBeginCaptureToGraph_ptsz;
typedef hooked_end hooked_cuStreamEndCapture, hooked_cuStreamEndCapture_ptsz;
typedef hooked_run hooked_cuGraphLaunch, hooked_cuGraphLaunch_ptsz;
typedef hooked_node hooked_cuGraphAddNode;
typedef hooked_node_edges hooked_cuGraphAddNode_v2, hooked_cuGraphAddNode_v3;
typedef int hooked_cuGraphAddMemAllocNode(void **, void *, const void *, size_t, struct mt_cuda_alloc_node *);
typedef int hooked_cuMemPoolTrimTo(uint64_t, size_t);
typedef int hooked_cuDevicePrimaryCtxRetain(uint64_t *, int);
typedef int hooked_cuCtxCreate(uint64_t *, unsigned, int);
typedef int hooked_cuCtxCreate_v2(uint64_t *, unsigned, int);
typedef int hooked_cuCtxCreate_v3(uint64_t *, void *, int, unsigned, int);
typedef int hooked_cuCtxCreate_v4(uint64_t *, void *, unsigned, int);
typedef int hooked_cuCtxFromGreenCtx(uint64_t *, void *);
typedef int hooked_cuGreenCtxCreate(void **, void *, int, unsigned);
typedef hooked_handle hooked_cuGreenCtxDestroy;

#define MT_HOOK(number, level, symbol, base, version, variant, op, what, where, params, ...) \
  typedef int hooked_##symbol params;
#define MT_CUSTOM(...)
#define MT_REPORT(...)
#include "hooks.def"
#undef MT_HOOK
#undef MT_CUSTOM

#define MT_HOOK(number, level, symbol, ...) HOOKED_##symbol,
#define MT_CUSTOM MT_HOOK
enum hooked {
#include "hooks.def"
  HOOKED_COUNT
};
#undef MT_HOOK
#undef MT_CUSTOM
#undef MT_REPORT
