#define _GNU_SOURCE
/* Hooks of calls that change no memory: cuMemGetInfo, by which programs size their allocations, so that a run on
 * another device allocates differently; and CUDA events. An allocator that gives a block to several streams records an
 * event on each when the block is freed, and reuses it when all are complete. Other users of events pay for one
 * comparison of their return address. */
#include <stddef.h>

#include "hooks/abi.h"
#include "hooks/call.h"
#include "hooks/hooks.h"
#include "hooks/original.h"

static const struct mt_event_watch *watch;

void mt_event_watch(const struct mt_event_watch *what) { __atomic_store_n(&watch, what, __ATOMIC_RELEASE); }

static inline bool lies_in(uintptr_t at, struct mt_range range) { return at - range.start < range.end - range.start; }

/* Only on success. */
static inline int report_recorded(int status, uintptr_t caller, void *event, void *stream) {
  const struct mt_event_watch *w = __atomic_load_n(&watch, __ATOMIC_ACQUIRE);
  if (w && lies_in(caller, w->records) && !status) w->recorded((uint64_t)event, (uint64_t)stream);
  return status;
}

static inline int report_completed(int status, uintptr_t caller, void *event) {
  const struct mt_event_watch *w = __atomic_load_n(&watch, __ATOMIC_ACQUIRE);
  if (w && (lies_in(caller, w->completes[0]) || lies_in(caller, w->completes[1])) && !status)
    w->completed((uint64_t)event);
  return status;
}

#define MT_EVENT_RECORD(symbol)                                         \
  MT_HOOKED(symbol, (void *event, void *stream)) {                      \
    MT_HOOKED_REAL(symbol);                                             \
    return report_recorded(real(event, stream), caller, event, stream); \
  }
MT_EVENT_RECORD(cudaEventRecord)
MT_EVENT_RECORD(cudaEventRecord_ptsz)

MT_HOOKED(cudaEventQuery, (void *event)) {
  MT_HOOKED_REAL(cudaEventQuery);
  return report_completed(real(event), caller, event);
}

MT_HOOKED(cudaEventSynchronize, (void *event)) {
  MT_HOOKED_REAL(cudaEventSynchronize);
  return report_completed(real(event), caller, event);
}

MT_HOOKED(cuMemGetInfo_v2, (size_t *free, size_t *total)) {
  MT_HOOKED_REAL(cuMemGetInfo_v2);
  MT_HOOKED_OPEN(cuMemGetInfo_v2, driver, 0);
  int status = real(free, total);
  if (!call.self) return status;
  if (status) mt_driver_skip(&call);
  else
    mt_driver_close(&call,
                    &(struct mt_outcome){
                        .kind = MT_ASK, .addr = free ? *free : 0, .size = total ? *total : 0, .device = MT_CURRENT});
  return status;
}
