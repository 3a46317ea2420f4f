#define _GNU_SOURCE
#include "hooks/query.h"

#include <errno.h>

#include "base/thread.h"
#include "hooks/original.h"
#include "spool/module.h"

static const struct {
  const char *symbol, *base;
  int version;
} names[MT_QUERY_COUNT] = {
    [MT_QUERY_CONTEXT] = {"cuCtxGetCurrent", "cuCtxGetCurrent", 4000},
    [MT_QUERY_DEVICE] = {"cuCtxGetDevice", "cuCtxGetDevice", 2000},
    [MT_QUERY_PRIMARY_STATE] = {"cuDevicePrimaryCtxGetState", "cuDevicePrimaryCtxGetState", 7000},
    [MT_QUERY_RANGE] = {"cuMemGetAddressRange_v2", "cuMemGetAddressRange", 3020},
    [MT_QUERY_CAPTURING] = {"cuStreamIsCapturing", "cuStreamIsCapturing", 10000},
    [MT_QUERY_CAPTURING_PTSZ] = {"cuStreamIsCapturing_ptsz", "cuStreamIsCapturing", 10000},
    [MT_QUERY_CAPTURE] = {"cuStreamGetCaptureInfo_v2", "cuStreamGetCaptureInfo", 11030},
    [MT_QUERY_CAPTURE_PTSZ] = {"cuStreamGetCaptureInfo_v2_ptsz", "cuStreamGetCaptureInfo", 11030},
    [MT_QUERY_STREAM_CONTEXT] = {"cuStreamGetCtx", "cuStreamGetCtx", 9020},
    [MT_QUERY_POINTER] = {"cuPointerGetAttribute", "cuPointerGetAttribute", 4000},
    [MT_QUERY_POOL] = {"cuDeviceGetMemPool", "cuDeviceGetMemPool", 11020},
    [MT_QUERY_POOL_DEFAULT] = {"cuDeviceGetDefaultMemPool", "cuDeviceGetDefaultMemPool", 11020},
    [MT_QUERY_POOL_VALUE] = {"cuMemPoolGetAttribute", "cuMemPoolGetAttribute", 11020},
    [MT_QUERY_GRAPH_VALUE] = {"cuDeviceGetGraphMemAttribute", "cuDeviceGetGraphMemAttribute", 11040},
};

static void *functions[MT_QUERY_COUNT];
static uint32_t searched[MT_QUERY_COUNT];

void mt_query_set(enum mt_query which, void *function) {
  __atomic_store_n(&functions[which], function, __ATOMIC_RELEASE);
}

bool mt_query_known(enum mt_query which) { return __atomic_load_n(&functions[which], __ATOMIC_RELAXED) != NULL; }

const char *mt_query_base(enum mt_query which, int *version) {
  *version = names[which].version;
  return names[which].base;
}

void *mt_query_find(enum mt_query which) {
  void *function = __atomic_load_n(&functions[which], __ATOMIC_ACQUIRE);
  if (MT_LIKELY(function != NULL) || __atomic_load_n(&searched[which], __ATOMIC_RELAXED)) return function;
  int error = errno;
  function = mt_driver_symbol(names[which].symbol);
  if (function) mt_query_set(which, function);
  /* Last: a thread that comes meanwhile searches as well; otherwise it would conclude that the function is missing. */
  __atomic_store_n(&searched[which], 1, __ATOMIC_RELAXED);
  errno = error;
  return function;
}

void mt_query_drop_unloaded(void) {
  for (int i = 0; i < MT_QUERY_COUNT; i++) {
    void *have = __atomic_load_n(&functions[i], __ATOMIC_ACQUIRE);
    if (have && mt_module_find((uintptr_t)have)) continue;
    mt_query_set((enum mt_query)i, NULL);
    __atomic_store_n(&searched[i], 0, __ATOMIC_RELAXED);
  }
}
