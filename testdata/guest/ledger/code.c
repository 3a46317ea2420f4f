/* Modules and libraries: their variables count from the moment at which they are asked for. */
#include <stdio.h>

#include "ledger.h"

enum { VARIABLES = 3, VARIABLE = 64 << 10 };
static const char image[64] = "image", path[] = "/proc/self/exe";

char variable[100]; /* the runtime's name for one of its own */

struct code {
  void *handle;
};

/* The null runtime keeps its variables in host memory, so nothing changes. */
static void ask_runtime(struct actor *a) {
  void *at;
  enter_runtime(enter_primary(a));
  DO(a, cudaGetSymbolAddress, &at, variable);
}

static void make_module(struct actor *a, struct slot *s) {
  void **out = &OWN(code, s)->handle;
  if (one_in(a, 3)) ask_runtime(a);
  s->context = enter_any(a);
  switch (pick(a, 4)) {
    case 0: DO(a, cuModuleLoad, out, path); break;
    case 1: DO(a, cuModuleLoadData, out, image); break;
    case 2: DO(a, cuModuleLoadDataEx, out, image, 0, NULL, NULL); break;
    default: DO(a, cuModuleLoadFatBinary, out, image);
  }
}

static void make_library(struct actor *a, struct slot *s) {
  void **out = &OWN(code, s)->handle;
  s->context = enter_any(a);
  if (one_in(a, 2)) DO(a, cuLibraryLoadData, out, image, NULL, NULL, 0, NULL, NULL, 0);
  else DO(a, cuLibraryLoadFromFile, out, path, NULL, NULL, 0, NULL, NULL, 0);
}

static void unload(struct actor *a, struct slot *s) {
  for (int i = 0; i < VARIABLES; i++)
    if (s->hold[i].live) lose(a, s, i);
  if (s->kind == &library) DO(a, cuLibraryUnload, OWN(code, s)->handle);
  else DO(a, cuModuleUnload, OWN(code, s)->handle);
}

static bool step(struct actor *a, struct slot *s) {
  int which = (int)pick(a, VARIABLES);
  uint64_t at;
  size_t size = VARIABLE;
  enter(a, s->context);
  if (a->draining || one_in(a, 4)) {
    unload(a, s);
    return true;
  }
  char name[8];
  snprintf(name, sizeof name, "v%d", which);
  if (!s->hold[which].live)
    gain(a, s, which, DRIVER, device_of(s->context), VARIABLE, s->context); /* asked for again, it is the same one */
  size_t *told = one_in(a, 2) ? &size : NULL;
  if (s->kind == &library) DO(a, cuLibraryGetGlobal, &at, told, OWN(code, s)->handle, name);
  else DO(a, cuModuleGetGlobal_v2, &at, told, OWN(code, s)->handle, name);
  if (size != VARIABLE) must("size of a variable", (int)size, VARIABLE);
  return false;
}

/* Where the device has another context, the trace keeps them until they are unloaded (docs/hooks.md). */
static void leave(struct actor *a, struct slot *s) {
  if (!others_live(s->context)) return;
  enter(a, s->context);
  unload(a, s);
  s->kind = NULL;
}

/* Else variables end with their context; a library itself goes on. */
static bool orphan(struct actor *a, struct slot *s) {
  if (s->kind == &library) DO(a, cuLibraryUnload, OWN(code, s)->handle);
  return true;
}

const struct kind module = {"module", 4, make_module, step, leave, orphan};
const struct kind library = {"library", 3, make_library, step, leave, orphan};
