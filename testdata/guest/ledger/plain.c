/* Device and managed memory by address: plain, pitched, solid. Either half of CUDA frees what the other allocated,
 * whatever context is current. */
#include <stdlib.h>

#include "ledger.h"

struct plain {
  uint64_t at;
};

enum { PITCH = 512 };

static uint64_t row(uint64_t width) { return (width + PITCH - 1) / PITCH * PITCH; }

static void refused(struct actor *a, int device) {
  const size_t much = (size_t)1 << 50;
  uint64_t at;
  void *p;
  book_refusal(a, DRIVER, device);
  book_open(a);
  if (one_in(a, 2)) FAILS(a, NO_MEMORY, cuMemAlloc_v2, &at, much);
  else FAILS(a, NO_MEMORY, cudaMalloc, &p, much);
  book_close(a);
}

/* An address that nobody allocated. */
static void wild(struct actor *a) {
  book_failed_free(a);
  book_open(a);
  if (one_in(a, 2)) FAILS(a, INVALID, cuMemFree_v2, 0xdeadbeef00 + pick(a, 1000));
  else FAILS(a, INVALID, cudaFree, (void *)(uintptr_t)(0xdeadbeef00 + pick(a, 1000)));
  book_close(a);
}

/* What is asked changes no memory. */
static void ask(struct actor *a, bool runtime) {
  size_t available, all;
  DO(a, cuMemGetInfo_v2, &available, &all);
  if (!runtime) return;
  DO(a, cudaMemGetInfo, &available, &all);
  void *event = runtime_event();
  DO(a, cudaEventRecord, event, NULL);
  if (HAS(cudaEventRecord_ptsz)) DO(a, cudaEventRecord_ptsz, event, NULL);
  DO(a, cudaEventSynchronize, event);
  DO(a, cudaEventQuery, event);
  runtime_event_end(event);
}

static void by_pitch(struct actor *a, struct slot *s, bool runtime) {
  size_t width = 1 + pick(a, 5000), height = 1 + pick(a, 100), depth = 1 + pick(a, 4), pitch;
  struct mt_cuda_pitched solid;
  struct plain *own = OWN(plain, s);
  int context = s->context, device = device_of(context);
  if (!runtime) {
    gain(a, s, 0, DRIVER, device, row(width) * height, context);
    DO(a, cuMemAllocPitch_v2, &own->at, &pitch, width, height, 4);
  } else if (one_in(a, 2)) {
    gain(a, s, 0, DRIVER, device, row(width) * height, context);
    DO(a, cudaMallocPitch, (void **)&own->at, &pitch, width, height);
  } else {
    gain(a, s, 0, DRIVER, device, row(width) * height * depth, context);
    DO(a, cudaMalloc3D, &solid, (struct mt_cuda_extent){width, height, depth});
    own->at = (uint64_t)solid.ptr;
    pitch = solid.pitch;
  }
  if (pitch != row(width)) abort();
}

static void make(struct actor *a, struct slot *s) {
  bool runtime = one_in(a, 3), managed = one_in(a, 5);
  size_t size = any_size(a);
  struct plain *own = OWN(plain, s);
  void *nothing;
  s->context = runtime ? enter_primary(a) : enter_any(a);
  if (runtime) enter_runtime(s->context);
  if (one_in(a, 50)) refused(a, device_of(s->context));
  if (one_in(a, 50)) wild(a);
  if (one_in(a, 50)) ask(a, runtime);
  if (runtime && one_in(a, 50)) DO(a, cudaMalloc, &nothing, 0);
  if (one_in(a, 6)) {
    by_pitch(a, s, runtime);
    return;
  }
  gain(a, s, 0, managed ? MANAGED : DRIVER, device_of(s->context), size, s->context);
  if (!runtime && !managed) DO(a, cuMemAlloc_v2, &own->at, size);
  else if (!runtime) DO(a, cuMemAllocManaged, &own->at, size, 1);
  else if (managed) DO(a, cudaMallocManaged, (void **)&own->at, size, 1);
  else DO(a, cudaMalloc, (void **)&own->at, size);
}

static bool step(struct actor *a, struct slot *s) {
  uint64_t at = OWN(plain, s)->at;
  bool managed = s->hold[0].account == MANAGED;
  int context = one_in(a, 2) ? enter_any(a) : enter_primary(a);
  if (contexts[context].primary && one_in(a, 2)) enter_runtime(context);
  if (one_in(a, 20)) DO(a, cuMemFree_v2, 0), DO(a, cudaFree, NULL);
  lose(a, s, 0);
  switch (pick(a, managed ? 2 : 4)) {
    case 0: DO(a, cuMemFree_v2, at); break;
    case 1: DO(a, cudaFree, (void *)at); break;
    case 2: DO(a, cuMemFreeAsync, at, NULL); break;
    default: DO(a, cudaFreeAsync, (void *)at, NULL);
  }
  return true;
}

const struct kind plain = {"plain", 20, make, step, NULL, NULL};
