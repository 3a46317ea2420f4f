/* What the other process shares: opened, mapped, imported; closed before or after the other one lets go of it, where
 * CUDA allows both. */
#include <stdlib.h>
#include <unistd.h>

#include "ledger.h"

enum { TIMES = 3 };

struct share {
  struct offer offer;
  uint64_t at, va, size;
  int times, stage;
  bool gone; /* there */
  int pool_number;
  void *pool;
};

static void let_go(struct share *own) {
  if (!own->gone) peer_free(own->offer.number);
  own->gone = true;
}

/* Device memory, opened up to three times at the same address. */
static void open_again(struct actor *a, struct slot *s, bool runtime) {
  struct share *own = OWN(share, s);
  uint64_t at;
  if (!own->times) gain(a, s, 0, FOREIGN, device_of(s->context), own->size, s->context);
  if (runtime) DO(a, cudaIpcOpenMemHandle, (void **)&at, own->offer.ipc, 1);
  else if (one_in(a, 2)) DO(a, cuIpcOpenMemHandle_v2, &at, own->offer.ipc, 1);
  else DO(a, cuIpcOpenMemHandle, &at, own->offer.ipc, 1);
  if (own->times && at != own->at) abort();
  own->at = at;
  own->times++;
}

static void make_opened(struct actor *a, struct slot *s) {
  struct share *own = OWN(share, s);
  bool runtime = one_in(a, 2);
  *own = (struct share){.size = any_size(a)};
  own->offer = peer_ask(WISH_DEVICE, (int)pick(a, (unsigned)devices), own->size, 0);
  s->context = runtime ? enter_primary(a) : enter_any(a);
  if (runtime) enter_runtime(s->context);
  open_again(a, s, runtime);
}

static bool step_opened(struct actor *a, struct slot *s) {
  struct share *own = OWN(share, s);
  bool runtime = contexts[s->context].primary && one_in(a, 2);
  enter(a, s->context);
  if (runtime) enter_runtime(s->context);
  if (own->size >= MIB && one_in(a, 5))
    let_go(own); /* first; a smaller one shares its page with others that come after it */
  if (!own->gone && own->times < TIMES && !a->draining && one_in(a, 3)) {
    open_again(a, s, runtime);
    return false;
  }
  if (--own->times == 0) lose(a, s, 0);
  if (runtime) DO(a, cudaIpcCloseMemHandle, (void *)own->at);
  else DO(a, cuIpcCloseMemHandle, own->at);
  if (own->times) return false;
  let_go(own);
  return true;
}

static bool orphan_opened(struct actor *a, struct slot *s) {
  (void)a;
  let_go(OWN(share, s));
  return true;
}

const struct kind opened = {"opened", 5, make_opened, step_opened, NULL, orphan_opened};

/* A handle tells its size when it is mapped. */
static void import(struct actor *a, struct slot *s, enum wish wish) {
  struct share *own = OWN(share, s);
  *own = (struct share){.size = (1 + pick(a, 4)) * 2 * MIB};
  own->offer = peer_ask(wish, (int)pick(a, (unsigned)devices), own->size, 0);
  enter_any(a);
  if (wish == WISH_FABRIC) DO(a, cuMemImportFromShareableHandle, &own->at, own->offer.block, BY_FABRIC);
  else DO(a, cuMemImportFromShareableHandle, &own->at, (void *)(intptr_t)own->offer.descriptor, BY_DESCRIPTOR);
  if (wish != WISH_FABRIC) close(own->offer.descriptor);
}

static void make_imported(struct actor *a, struct slot *s) { import(a, s, one_in(a, 2) ? WISH_HANDLE : WISH_FABRIC); }
static void make_teamed(struct actor *a, struct slot *s) { import(a, s, WISH_TEAM); }

static bool step_imported(struct actor *a, struct slot *s) {
  struct share *own = OWN(share, s);
  int context = enter_any(a);
  if (one_in(a, 4)) let_go(own);
  switch (own->stage++) {
    case 0:
      gain(a, s, 1, ADDRESS, NOWHERE, own->size, NO_CONTEXT);
      DO(a, cuMemAddressReserve, &own->va, own->size, 0, 0, 0);
      return false;
    case 1:
      gain(a, s, 0, FOREIGN, device_of(context), own->size, NO_CONTEXT);
      DO(a, cuMemMap, own->va, own->size, 0, own->at, 0);
      return false;
    case 2: DO(a, cuMemRelease, own->at); return false;
    case 3:
      lose(a, s, 0);
      DO(a, cuMemUnmap, own->va, own->size);
      return false;
    default:
      lose(a, s, 1);
      DO(a, cuMemAddressFree, own->va, own->size);
      let_go(own);
      return true;
  }
}

const struct kind imported = {"imported", 4, make_imported, step_imported, NULL, NULL};
const struct kind teamed = {"teamed", 2, make_teamed, step_imported, NULL, NULL};

/* A block of the other's pool. The importer frees first, as CUDA demands. */
static void make_block(struct actor *a, struct slot *s) {
  struct share *own = OWN(share, s);
  bool runtime = one_in(a, 2);
  int device = (int)pick(a, (unsigned)devices);
  *own = (struct share){.size = any_size(a)};
  struct offer pool = peer_ask(WISH_POOL, device, 0, 0);
  own->pool_number = pool.number;
  own->offer = peer_ask(WISH_BLOCK, device, own->size, pool.number);
  int context = enter_primary(a);
  if (runtime) enter_runtime(context);
  if (runtime) DO(a, cudaMemPoolImportFromShareableHandle, &own->pool, (void *)(intptr_t)pool.descriptor, 1, 0);
  else DO(a, cuMemPoolImportFromShareableHandle, &own->pool, (void *)(intptr_t)pool.descriptor, 1, 0);
  close(pool.descriptor);
  gain(a, s, 0, FOREIGN, device_of(context), own->size, NO_CONTEXT);
  if (runtime) DO(a, cudaMemPoolImportPointer, (void **)&own->at, own->pool, own->offer.block);
  else DO(a, cuMemPoolImportPointer, &own->at, own->pool, own->offer.block);
}

static bool step_block(struct actor *a, struct slot *s) {
  struct share *own = OWN(share, s);
  enter_any(a);
  if (own->pool && one_in(a, 2)) {
    DO(a, cuMemPoolDestroy, own->pool); /* before its block */
    own->pool = NULL;
    return false;
  }
  if (s->hold[0].live) {
    lose(a, s, 0);
    if (one_in(a, 2)) DO(a, cuMemFreeAsync, own->at, NULL);
    else DO(a, cuMemFree_v2, own->at);
    peer_free(own->offer.number);
    peer_free(own->pool_number);
  }
  return !own->pool;
}

const struct kind shared_block = {"block", 3, make_block, step_block, NULL, NULL};
