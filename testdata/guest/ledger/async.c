/* Memory in the order of streams: from the pool of the stream's device, or from a pool of the program's own, which may
 * end before its blocks do. It belongs to the device and outlives contexts. */
#include "ledger.h"

const struct mt_cuda_pool_props plain_pool = {.type = 1, .location_type = 1};

struct mt_cuda_pool_props pool_on(int device, int handle_types) {
  return (struct mt_cuda_pool_props){
      .type = 1, .handle_types = handle_types, .location_type = 1, .location_id = device};
}

enum { BLOCKS = 4 };

struct async {
  void *pool; /* NULL: ended, or the device's */
  uint64_t at[BLOCKS];
  int device;
};

/* A thread's own default stream belongs to the current context like any other. */
static void allocate(struct actor *a, struct slot *s, int block, void *stream) {
  struct async *own = OWN(async, s);
  size_t size = any_size(a);
  uint64_t *at = &own->at[block];
  gain(a, s, block, DRIVER, own->device, size, NO_CONTEXT);
  if (own->pool)
    switch (pick(a, 4)) {
      case 0: DO(a, cuMemAllocFromPoolAsync, at, size, own->pool, stream); break;
      case 1: DO(a, cuMemAllocFromPoolAsync_ptsz, at, size, own->pool, stream); break;
      case 2: DO(a, cudaMallocFromPoolAsync, (void **)at, size, own->pool, stream); break;
      default: DO(a, cudaMallocFromPoolAsync_ptsz, (void **)at, size, own->pool, stream);
    }
  else
    switch (pick(a, 4)) {
      case 0: DO(a, cuMemAllocAsync, at, size, stream); break;
      case 1: DO(a, cuMemAllocAsync_ptsz, at, size, stream); break;
      case 2: DO(a, cudaMallocAsync, (void **)at, size, stream); break;
      default: DO(a, cudaMallocAsync_ptsz, (void **)at, size, stream);
    }
}

static void give_back(struct actor *a, struct slot *s, int block, void *stream) {
  uint64_t at = OWN(async, s)->at[block];
  lose(a, s, block);
  switch (pick(a, 6)) {
    case 0: DO(a, cuMemFreeAsync, at, stream); break;
    case 1: DO(a, cuMemFreeAsync_ptsz, at, stream); break;
    case 2: DO(a, cudaFreeAsync, (void *)at, stream); break;
    case 3: DO(a, cudaFreeAsync_ptsz, (void *)at, stream); break;
    case 4: DO(a, cuMemFree_v2, at); break;
    default: DO(a, cudaFree, (void *)at);
  }
}

/* Any device's stream will do, whatever context is current; the runtime wants a primary one. */
static void *somewhere(struct actor *a) {
  int context = enter_primary(a), other = primary_of((int)pick(a, (unsigned)devices));
  enter_runtime(context);
  return one_in(a, 3) ? any_stream(a, other) : any_stream(a, context);
}

static void refused(struct actor *a, int device, void *stream) {
  uint64_t at;
  book_refusal(a, DRIVER, device);
  book_open(a);
  FAILS(a, NO_MEMORY, cuMemAllocAsync, &at, (size_t)1 << 50, stream);
  book_close(a);
}

static void make_streamed(struct actor *a, struct slot *s) {
  int context = enter_primary(a), of = one_in(a, 3) ? primary_of((int)pick(a, (unsigned)devices)) : context;
  void *stream = any_stream(a, of);
  enter_runtime(context);
  OWN(async, s)->device = device_of(stream ? of : context);
  if (one_in(a, 50)) refused(a, OWN(async, s)->device, stream);
  allocate(a, s, 0, stream);
}

static bool step_streamed(struct actor *a, struct slot *s) {
  give_back(a, s, 0, somewhere(a));
  return true;
}

static void make_pooled(struct actor *a, struct slot *s) {
  struct async *own = OWN(async, s);
  own->device = (int)pick(a, (unsigned)devices);
  const struct mt_cuda_pool_props props = pool_on(own->device, one_in(a, 4));
  enter_runtime(enter_primary(a));
  if (one_in(a, 2)) DO(a, cuMemPoolCreate, &own->pool, &props);
  else DO(a, cudaMemPoolCreate, &own->pool, &props);
}

static void end_pool(struct actor *a, struct async *own) {
  if (one_in(a, 2)) DO(a, cuMemPoolDestroy, own->pool);
  else DO(a, cudaMemPoolDestroy, own->pool);
  own->pool = NULL;
}

static bool step_pooled(struct actor *a, struct slot *s) {
  struct async *own = OWN(async, s);
  int block = (int)pick(a, BLOCKS);
  void *stream = somewhere(a);
  if (s->hold[block].live) give_back(a, s, block, stream);
  else if (own->pool && !a->draining && !one_in(a, 4)) allocate(a, s, block, stream);
  else if (own->pool && one_in(a, 3)) end_pool(a, own);
  else if (own->pool && one_in(a, 2)) DO(a, cuMemPoolTrimTo, (uint64_t)own->pool, pick(a, 64) * MIB);
  else if (own->pool) DO(a, cudaMemPoolTrimTo, own->pool, pick(a, 64) * MIB);
  for (int i = 0; i < BLOCKS; i++)
    if (s->hold[i].live) return false;
  return !own->pool;
}

const struct kind streamed = {"streamed", 12, make_streamed, step_streamed, NULL, NULL};
const struct kind pooled = {"pooled", 5, make_pooled, step_pooled, NULL, NULL};
