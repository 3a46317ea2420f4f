/* Pinned memory of the host: the driver's own, and the program's, registered. */
#include <stdlib.h>
#include <sys/mman.h>

#include "ledger.h"

struct host {
  void *at;
  size_t size; /* mapped by the program */
};

static void make_pinned(struct actor *a, struct slot *s) {
  struct host *own = OWN(host, s);
  size_t size = any_size(a);
  bool runtime = one_in(a, 2);
  s->context = runtime ? enter_primary(a) : enter_any(a);
  if (runtime) enter_runtime(s->context);
  gain(a, s, 0, HOST, NOWHERE, size, s->context);
  if (runtime && one_in(a, 2)) DO(a, cudaMallocHost, &own->at, size);
  else if (runtime) DO(a, cudaHostAlloc, &own->at, size, 0);
  else if (one_in(a, 2)) DO(a, cuMemAllocHost_v2, &own->at, size);
  else DO(a, cuMemHostAlloc, &own->at, size, 1);
}

static bool step_pinned(struct actor *a, struct slot *s) {
  struct host *own = OWN(host, s);
  bool runtime = one_in(a, 2);
  int context = runtime ? enter_primary(a) : enter_any(a);
  if (runtime) enter_runtime(context);
  if (one_in(a, 20)) DO(a, cuMemFreeHost, NULL), DO(a, cudaFreeHost, NULL);
  lose(a, s, 0);
  if (runtime) DO(a, cudaFreeHost, own->at);
  else DO(a, cuMemFreeHost, own->at);
  return true;
}

static void make_registered(struct actor *a, struct slot *s) {
  struct host *own = OWN(host, s);
  size_t size = 1 + pick(a, 1 << 20);
  bool runtime = one_in(a, 3);
  s->context = runtime ? enter_primary(a) : enter_any(a);
  if (runtime) enter_runtime(s->context);
  own->size = (size + 4095) / 4096 * 4096;
  own->at = mmap(NULL, own->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (own->at == MAP_FAILED) abort();
  gain(a, s, 0, REGISTERED, NOWHERE, size, s->context);
  if (runtime) DO(a, cudaHostRegister, own->at, size, 0);
  else if (one_in(a, 2)) DO(a, cuMemHostRegister, own->at, size, 0);
  else DO(a, cuMemHostRegister_v2, own->at, size, 0);
}

static bool forget(struct actor *a, struct slot *s) {
  (void)a;
  if (munmap(OWN(host, s)->at, OWN(host, s)->size)) abort();
  return true;
}

static bool step_registered(struct actor *a, struct slot *s) {
  struct host *own = OWN(host, s);
  bool runtime = one_in(a, 2);
  int context = runtime ? enter_primary(a) : enter_any(a);
  if (runtime) enter_runtime(context);
  lose(a, s, 0);
  if (runtime) DO(a, cudaHostUnregister, own->at);
  else DO(a, cuMemHostUnregister, own->at);
  return forget(a, s);
}

const struct kind pinned = {"pinned", 6, make_pinned, step_pinned, NULL, NULL};
const struct kind registered = {"registered", 5, make_registered, step_registered, NULL, forget};
