/* Green contexts own nothing: what is allocated under one is the primary context's. */
#include "ledger.h"

struct green {
  void *green;
  uint64_t context, at;
  bool dead; /* its primary context ended */
};

static void make(struct actor *a, struct slot *s) {
  struct green *own = OWN(green, s);
  char resource[256] = {0};
  void *description;
  s->context = enter_primary(a);
  int device = device_of(s->context);
  own->dead = false;
  HELP(cuDeviceGetDevResource(device, resource, 1));
  HELP(cuDevResourceGenerateDesc(&description, resource, 1));
  DO(a, cuGreenCtxCreate, &own->green, description, device, 1);
  DO(a, cuCtxFromGreenCtx, &own->context, own->green);
}

static void destroy(struct actor *a, struct slot *s) { DO(a, cuGreenCtxDestroy, OWN(green, s)->green); }

static bool step(struct actor *a, struct slot *s) {
  struct green *own = OWN(green, s);
  size_t size = any_size(a);
  if (own->dead) {
    enter_any(a);
    destroy(a, s);
    return true;
  }
  if (!s->hold[0].live && (a->draining || one_in(a, 3))) {
    enter(a, s->context);
    destroy(a, s);
    return true;
  }
  HELP(cuCtxSetCurrent((void *)own->context));
  if (s->hold[0].live) {
    lose(a, s, 0);
    DO(a, cuMemFree_v2, own->at);
  } else {
    gain(a, s, 0, DRIVER, device_of(s->context), size, s->context);
    DO(a, cuMemAlloc_v2, &own->at, size);
  }
  return false;
}

/* It goes on holding the primary context, or what comes in its place: let its end not be the last holder's. */
static bool orphan(struct actor *a, struct slot *s) {
  uint64_t primary;
  DO(a, cuDevicePrimaryCtxRetain, &primary, device_of(s->context));
  OWN(green, s)->dead = true;
  return false;
}

const struct kind green = {"green", 3, make, step, NULL, orphan};
