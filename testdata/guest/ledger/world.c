/* Devices, contexts and streams. A device has a primary context, which is reset now and then, and up to three that the
 * program makes and ends, each by one of the calls for that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"

struct context contexts[MOST_DEVICES * (1 + EXTRA)];
int devices, context_count;
static pthread_rwlock_t world;
static bool serially, ends;

void world_share(void) {
  if (serially) pthread_rwlock_wrlock(&world);
  else pthread_rwlock_rdlock(&world);
}

void world_leave(void) { pthread_rwlock_unlock(&world); }
bool world_ends(void) { return ends; }
int device_of(int context) { return contexts[context].device; }

int enter(struct actor *a, int context) {
  (void)a;
  HELP(cuCtxSetCurrent((void *)contexts[context].handle));
  return context;
}

int enter_any(struct actor *a) {
  int context;
  do context = (int)pick(a, (unsigned)context_count);
  while (!contexts[context].handle);
  return enter(a, context);
}

int enter_primary(struct actor *a) { return enter(a, primary_of((int)pick(a, (unsigned)devices))); }

void *any_stream(struct actor *a, int context) {
  return one_in(a, 4) ? NULL : contexts[context].stream[pick(a, STREAMS)];
}

bool others_live(int context) {
  for (int i = 0; i < context_count; i++)
    if (i != context && contexts[i].handle && contexts[i].device == contexts[context].device) return true;
  return false;
}

static void make_streams(struct context *c) {
  HELP(cuCtxSetCurrent((void *)c->handle));
  for (int i = 0; i < STREAMS; i++) HELP(cuStreamCreate(&c->stream[i], 1));
}

static void make_context(struct actor *a, struct context *c) {
  void *popped;
  if (c->primary) {
    DO(a, cuDevicePrimaryCtxRetain, &c->handle, c->device);
    if (one_in(a, 4)) { /* one more holder, which changes nothing */
      DO(a, cuDevicePrimaryCtxRetain, &c->handle, c->device);
      DO(a, cuDevicePrimaryCtxRelease_v2, c->device);
    }
    make_streams(c);
    return;
  }
  switch (pick(a, 4)) {
    case 0: DO(a, cuCtxCreate, &c->handle, 0, c->device); break;
    case 1: DO(a, cuCtxCreate_v2, &c->handle, 0, c->device); break;
    case 2: DO(a, cuCtxCreate_v3, &c->handle, NULL, 0, 0, c->device); break;
    default: DO(a, cuCtxCreate_v4, &c->handle, NULL, 0, c->device);
  }
  HELP(cuCtxPopCurrent_v2(&popped));
  make_streams(c);
}

void world_start(struct actor *a, int count, bool serial, bool ending) {
  serially = serial;
  ends = ending;
  devices = count;
  context_count = count * (1 + EXTRA);
  pthread_rwlockattr_t how;
  pthread_rwlockattr_init(&how);
  pthread_rwlockattr_setkind_np(&how, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init(&world, &how);
  for (int i = 0; i < context_count; i++) {
    contexts[i].device = i / (1 + EXTRA);
    contexts[i].primary = i % (1 + EXTRA) == 0;
    if (contexts[i].primary || !one_in(a, 3)) make_context(a, &contexts[i]);
  }
}

/* Lets go until nobody holds it: the last one ends it. */
static void release_all(struct actor *a, int device) {
  unsigned flags;
  int active = 1;
  book_open(a);
  while (active) {
    if (one_in(a, 2)) must("cuDevicePrimaryCtxRelease", CALL(a, cuDevicePrimaryCtxRelease, device), 0);
    else must("cuDevicePrimaryCtxRelease_v2", CALL(a, cuDevicePrimaryCtxRelease_v2, device), 0);
    HELP(cuDevicePrimaryCtxGetState(device, &flags, &active));
  }
  book_close(a);
}

/* The calls that end a primary context. A reset ends it for its holders too, who may let go of it once more all the
 * same. */
static void end_primary(struct actor *a, struct context *c) {
  enter_runtime(primary_of(c->device));
  switch (pick(a, 5)) {
    case 0: DO(a, cuDevicePrimaryCtxReset, c->device); break;
    case 1: DO(a, cuDevicePrimaryCtxReset_v2, c->device); break;
    case 2: DO(a, cudaDeviceReset); break;
    case 3:
      if (HAS(cudaThreadExit)) DO(a, cudaThreadExit);
      else DO(a, cudaDeviceReset);
      break;
    default: release_all(a, c->device); return;
  }
  if (one_in(a, 2)) DO(a, cuDevicePrimaryCtxRelease, c->device);
}

static void end_made(struct actor *a, struct context *c) {
  void *attached;
  switch (pick(a, 3)) {
    case 0: DO(a, cuCtxDestroy, c->handle); break;
    case 1: DO(a, cuCtxDestroy_v2, c->handle); break;
    default: /* by counting: one more user, then none */
      HELP(cuCtxSetCurrent((void *)c->handle));
      HELP(cuCtxAttach(&attached, 0));
      FAILS(a, 0, cuCtxDetach, c->handle);
      DO(a, cuCtxDetach, c->handle);
  }
}

static bool belongs(const struct slot *s, int context) { return s->kind && s->context == context; }

static void end_context(struct actor *a, int context) {
  struct context *c = &contexts[context];
  for (int i = 0; i < slot_count; i++)
    if (belongs(&slots[i], context) && slots[i].kind->leave) slots[i].kind->leave(a, &slots[i]);
  for (int i = 0; i < slot_count; i++)
    for (int h = 0; h < HOLDS && slots[i].kind; h++)
      if (slots[i].hold[h].live && slots[i].hold[h].owner == context) lose(a, &slots[i], h);
  if (c->primary) end_primary(a, c);
  else end_made(a, c);
  c->handle = 0;
  for (int i = 0; i < slot_count; i++)
    if (belongs(&slots[i], context) && (!slots[i].kind->orphan || slots[i].kind->orphan(a, &slots[i])))
      slots[i].kind = NULL;
}

void world_turn(struct actor *a) {
  pthread_rwlock_wrlock(&world);
  int context = (int)pick(a, (unsigned)context_count);
  if (contexts[context].handle && !(contexts[context].primary && one_in(a, 2))) {
    end_context(a, context);
    if (contexts[context].primary || one_in(a, 2)) make_context(a, &contexts[context]);
  } else if (!contexts[context].handle) {
    make_context(a, &contexts[context]);
  }
  world_leave();
}

void world_reset(struct actor *a) {
  pthread_rwlock_wrlock(&world);
  for (int device = 0; device < devices; device++) end_context(a, primary_of(device));
  world_leave();
}
