/* Every hooked function and the ways to it: the exported symbol, dlsym with a handle, and for the driver's
 * cuGetProcAddress in both forms, with the row's version and flags. All lead to the same function, so one is chosen at
 * random for each call. The runtime is built in, or the library that LEDGER_RUNTIME names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"

enum { RUNTIME, DRIVER_LEVEL, WAYS = 5 };
#define LEVEL_RUNTIME RUNTIME
#define LEVEL_DRIVER DRIVER_LEVEL

#ifdef LEDGER_STATIC_RUNTIME /* weak: versions differ in what they have; the driver's are found by name */
#define MT_HOOK(number, level, symbol, ...) extern int built_in_##symbol(void) __asm__(#symbol) __attribute__((weak));
#define MT_CUSTOM MT_HOOK
#define MT_REPORT(...)
#include "hooks.def"
#undef MT_HOOK
#undef MT_CUSTOM
#undef MT_REPORT
#define BUILT_IN(symbol) (void *)built_in_##symbol
#else
#define BUILT_IN(symbol) NULL
#endif

#define MT_HOOK(number, level, symbol, base, version, variant, ...) \
  {LEVEL_##level, #symbol, base, version, variant, BUILT_IN(symbol), 0, {0}},
#define MT_CUSTOM MT_HOOK
#define MT_REPORT(...)
static struct row {
  int level;
  const char *symbol, *base;
  int version, variant;
  void *built_in;
  unsigned ways;
  void *way[WAYS];
} rows[] = {
#include "hooks.def"
};

void must(const char *what, int status, int wanted) {
  if (status == wanted) return;
  fprintf(stderr, "%s: %d, wanted %d\n", what, status, wanted);
  abort();
}

static void add(struct row *row, void *function) {
  if (function) row->way[row->ways++] = function;
}

static void find_driver(struct row *row, void *library) {
  void *by[3] = {0};
  int status;
  add(row, dlsym(RTLD_DEFAULT, row->symbol));
  add(row, dlsym(library, row->symbol));
  if (!cuGetProcAddress(row->base, &by[0], row->version, (uint64_t)row->variant)) add(row, by[0]);
  if (!cuGetProcAddress_v2(row->base, &by[1], row->version, (uint64_t)row->variant, &status)) add(row, by[1]);
  if (!row->variant && !cuGetProcAddress_v2(row->base, &by[2], row->version, 1, &status)) add(row, by[2]);
}

static void find_runtime(struct row *row, void *library) {
  if (!library) {
    add(row, row->built_in);
    return;
  }
  void *exported = dlsym(library, row->symbol);
  if (!exported) return; /* the preloaded library has it all the same */
  add(row, exported);
  add(row, dlsym(RTLD_DEFAULT, row->symbol));
}

void route_start(void) {
  const char *path = getenv("LEDGER_RUNTIME");
  void *driver = dlopen("libcuda.so.1", RTLD_NOW), *runtime = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
  if (!driver || (path && !runtime)) must(dlerror(), -1, 0);
  for (size_t i = 0; i < HOOKED_COUNT; i++) {
    if (rows[i].level == DRIVER_LEVEL) find_driver(&rows[i], driver);
    else find_runtime(&rows[i], runtime);
  }
}

bool route_has(enum hooked id) { return rows[id].ways > 0; }

void *route(struct actor *a, enum hooked id) {
  struct row *row = &rows[id];
  if (!row->ways) must(row->symbol, -1, 0);
  book_count(id);
  return row->way[pick(a, row->ways)];
}

static void *beside(const char *symbol) {
  void *found = dlsym(RTLD_DEFAULT, symbol);
  if (!found) must(symbol, -1, 0);
  return found;
}

/* What is called of the runtime beside the hooks. */
#ifdef LEDGER_STATIC_RUNTIME
#define BESIDE(symbol) symbol
#else
#define BESIDE(symbol) ((__typeof__(symbol) *)beside(#symbol))
#endif
int runtime_version(void) {
  static int version;
  if (!version) HELP(BESIDE(cudaRuntimeGetVersion)(&version));
  return version;
}

void *runtime_event(void) {
  void *event;
  HELP(BESIDE(cudaEventCreateWithFlags)(&event, EVENT_WITHOUT_TIMES));
  return event;
}

void runtime_event_end(void *event) { HELP(BESIDE(cudaEventDestroy)(event)); }

/* As compiled code does with its variables before main. */
void register_variable(char *variable, size_t size) {
  static const struct {
    int magic, version;
    const void *image, *unused;
  } wrapper = {0x466243b1, 1, "image", NULL};
  (void)beside;
  void **handle = BESIDE(__cudaRegisterFatBinary)((void *)&wrapper);
  BESIDE(__cudaRegisterVar)(handle, variable, variable, "variable", 0, size, 0, 0);
  BESIDE(__cudaRegisterFatBinaryEnd)(handle);
}

void enter_runtime(int context) {
  HELP(BESIDE(cudaSetDevice)(contexts[context].device));
  HELP(cuCtxSetCurrent((void *)contexts[context].handle)); /* runtimes before 12 leave that to the next call */
}
