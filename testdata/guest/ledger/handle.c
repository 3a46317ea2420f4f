/* Physical memory by handle, of devices and of the host: mapped whole or in parts, at several places, with several
 * references, let go of in any order. */
#include <stdlib.h>
#include <unistd.h>

#include "ledger.h"

enum { MAPPINGS = 4, ON_DEVICE = 1, ON_HOST = 2, SPARE = 4 << 20 };

/* hold 0 is the memory, hold 1 + i the addresses of mapping i. */
struct handle {
  uint64_t handle, va[MAPPINGS], size;
  unsigned references, mappings, mapped; /* a bit for each mapping */
};

static void make(struct actor *a, struct slot *s) {
  struct handle *own = OWN(handle, s);
  bool host = one_in(a, 8);
  int device = (int)pick(a, (unsigned)devices);
  const int property[16] = {1,
                            one_in(a, 3)   ? BY_DESCRIPTOR
                            : one_in(a, 5) ? BY_FABRIC
                                           : 0,
                            host ? ON_HOST : ON_DEVICE, host ? 0 : device};
  enter_any(a);
  own->size = (1 + pick(a, 8)) * 2 * MIB;
  if (!host && one_in(a, 50)) {
    book_refusal(a, DRIVER, device);
    book_open(a);
    FAILS(a, NO_MEMORY, cuMemCreate, &own->handle, (size_t)1 << 50, (const void *)property, 0);
    book_close(a);
  }
  gain(a, s, 0, host ? HOST : DRIVER, host ? NOWHERE : device, own->size, NO_CONTEXT);
  DO(a, cuMemCreate, &own->handle, own->size, (const void *)property, 0);
  own->references = 1;
}

/* The memory goes with the last reference or the last mapping, whichever is later. */
static void perhaps_last(struct actor *a, struct slot *s) {
  if (!OWN(handle, s)->references && !OWN(handle, s)->mappings) lose(a, s, 0);
}

static void map(struct actor *a, struct slot *s, int at) {
  struct handle *own = OWN(handle, s);
  if (!own->references) return;
  gain(a, s, 1 + at, ADDRESS, NOWHERE, own->size + SPARE, NO_CONTEXT);
  DO(a, cuMemAddressReserve, &own->va[at], own->size + SPARE, 0, 0, 0);
  size_t half = own->size / 2 / (2 * MIB) * (2 * MIB);
  if (half && one_in(a, 2)) { /* two neighbours, undone by one call */
    DO(a, cuMemMap, own->va[at], half, 0, own->handle, 0);
    DO(a, cuMemMap, own->va[at] + half, own->size - half, half, own->handle, 0);
  } else {
    DO(a, cuMemMap, own->va[at], own->size, 0, own->handle, 0);
  }
  own->mappings++;
  own->mapped |= 1u << at;
}

static void unmap(struct actor *a, struct slot *s, int at) {
  struct handle *own = OWN(handle, s);
  own->mappings--;
  own->mapped &= ~(1u << at);
  perhaps_last(a, s);
  DO(a, cuMemUnmap, own->va[at], own->size);
  lose(a, s, 1 + at);
  DO(a, cuMemAddressFree, own->va[at], own->size + SPARE);
}

static void retain(struct actor *a, struct slot *s, int at) {
  struct handle *own = OWN(handle, s);
  uint64_t same;
  DO(a, cuMemRetainAllocationHandle, &same, (void *)(own->va[at] + pick(a, (unsigned)own->size)));
  if (same != own->handle) abort();
  own->references++;
}

static bool step(struct actor *a, struct slot *s) {
  struct handle *own = OWN(handle, s);
  int at = (int)pick(a, MAPPINGS);
  bool there = own->mapped >> at & 1;
  enter_any(a);
  if (there && !a->draining && own->references < 4 && one_in(a, 3)) retain(a, s, at);
  else if (there) unmap(a, s, at);
  else if (own->references && (a->draining || one_in(a, 2))) {
    own->references--;
    perhaps_last(a, s);
    DO(a, cuMemRelease, own->handle);
  } else if (!a->draining) {
    map(a, s, at);
  }
  return !own->references && !own->mappings;
}

const struct kind handled = {"handle", 12, make, step, NULL, NULL};

/* A multicast object over the program's own memory. */
struct multicast {
  uint64_t team, va, part, size;
  int step, device;
};

static void make_team(struct actor *a, struct slot *s) {
  struct multicast *own = OWN(multicast, s);
  const struct mt_cuda_multicast of = {.devices = 1, .size = own->size = (1 + pick(a, 4)) * 2 * MIB};
  own->device = (int)pick(a, (unsigned)devices);
  own->step = 0;
  s->context = NO_CONTEXT;
  enter(a, primary_of(own->device));
  gain(a, s, 0, MULTICAST, NOWHERE, own->size, NO_CONTEXT);
  DO(a, cuMulticastCreate, &own->team, &of);
}

static bool step_team(struct actor *a, struct slot *s) {
  struct multicast *own = OWN(multicast, s);
  const int property[16] = {1, 0, ON_DEVICE, own->device};
  enter(a, primary_of(own->device));
  switch (own->step++) {
    case 0:
      HELP(cuMulticastAddDevice(own->team, own->device));
      gain(a, s, 1, DRIVER, own->device, own->size, NO_CONTEXT);
      DO(a, cuMemCreate, &own->part, own->size, (const void *)property, 0);
      return false;
    case 1:
      if (one_in(a, 2)) DO(a, cuMulticastBindMem, own->team, 0, own->part, 0, own->size, 0);
      else DO(a, cuMulticastBindMem_v2, own->team, own->device, 0, own->part, 0, own->size, 0);
      return false;
    case 2:
      gain(a, s, 2, ADDRESS, NOWHERE, own->size, NO_CONTEXT);
      DO(a, cuMemAddressReserve, &own->va, own->size, 0, 0, 0);
      DO(a, cuMemMap, own->va, own->size, 0, own->team, 0);
      return false;
    case 3: DO(a, cuMemRelease, own->part); return false; /* the binding keeps it */
    case 4:
      lose(a, s, 1);
      DO(a, cuMulticastUnbind, own->team, own->device, 0, own->size);
      return false;
    case 5: DO(a, cuMemRelease, own->team); return false; /* the mapping keeps it */
    case 6:
      lose(a, s, 0);
      DO(a, cuMemUnmap, own->va, own->size);
      return false;
    default:
      lose(a, s, 2);
      DO(a, cuMemAddressFree, own->va, own->size);
      return true;
  }
}

const struct kind multicast = {"multicast", 3, make_team, step_team, NULL, NULL};
