/* Calls every hooked function, by one route:  cover driver|runtime ROUTE [RUNTIME]
 *
 * Routes: linked, dlsym (a real handle), default and next (dlsym's pseudo handles), versioned (dlvsym), proc1 and proc2
 * (cuGetProcAddress with each row's version and flags), legacy (the same with flag 1), entry and by-version
 * (cudaGetDriverEntryPoint, of RUNTIME). Every call and its status is printed; what a route cannot reach is called by
 * its exported symbol, and a hook that no part calls is an error: a new row of hooks.def needs a call here. */
#define _GNU_SOURCE
#include "cover.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRIVER = 1, RUNTIME = 2 };

#ifdef COVER_LINKED_DRIVER
#define LINKED_DRIVER(symbol) extern int linked_##symbol(void) __asm__(#symbol);
#define LINK_DRIVER(symbol) (void *)linked_##symbol
#else
#define LINKED_DRIVER(symbol)
#define LINK_DRIVER(symbol) NULL
#endif
#ifdef COVER_LINKED_RUNTIME /* weak: versions differ in what they have */
#define LINKED_RUNTIME(symbol) extern int linked_##symbol(void) __asm__(#symbol) __attribute__((weak));
#define LINK_RUNTIME(symbol) (void *)linked_##symbol
#else
#define LINKED_RUNTIME(symbol)
#define LINK_RUNTIME(symbol) NULL
#endif
#define MT_HOOK(number, level, symbol, ...) LINKED_##level(symbol)
#define MT_CUSTOM MT_HOOK
#define MT_REPORT(...)
#include "hooks.def"
#undef MT_HOOK
#undef MT_CUSTOM

#define MT_HOOK(number, level, symbol, base, version, variant, ...) \
  {#symbol, base, version, variant, level, LINK_##level(symbol), NULL, 0},
#define MT_CUSTOM MT_HOOK
static struct row {
  const char *symbol, *base;
  int version, variant, level;
  void *linked, *address;
  int calls;
} rows[] = {
#include "hooks.def"
};

static const char *wanted_level, *route;
static void *driver, *runtime;
static bool failed;

void *cover_function(enum hooked id) {
  if (!rows[id].address) {
    printf("%s: not to be had\n", rows[id].symbol);
    exit(3);
  }
  rows[id].calls++;
  return rows[id].address;
}

/* What is called beside the hooks, for a runtime that is built in: nobody else can find that. */
#ifdef COVER_LINKED_RUNTIME
#define BESIDE(symbol) extern int symbol(void);
#include "cover_beside.def"
#undef BESIDE
#endif
static const struct {
  const char *symbol;
  void *address;
} beside[] = {
#ifdef COVER_LINKED_RUNTIME
#define BESIDE(symbol) {#symbol, (void *)symbol},
#include "cover_beside.def"
#undef BESIDE
#endif
    {NULL, NULL}};

int (*cover_helper(const char *name))() {
  void *found = driver ? dlsym(driver, name) : NULL;
  for (size_t i = 0; !found && beside[i].symbol; i++)
    if (!strcmp(beside[i].symbol, name)) found = beside[i].address;
  if (!found && runtime) found = dlsym(runtime, name);
  if (!found) {
    printf("%s: no such function\n", name);
    exit(3);
  }
  return (int (*)())found;
}

int cover_status(const char *what, int status, int wanted) {
  printf("%s %d\n", what, status);
  if (status == wanted) return status;
  printf("  wanted %d\n", wanted);
  failed = true;
  return status;
}

static int proc_flags(const struct row *row) {
  if (row->variant) return row->variant;
  return !strcmp(route, "legacy") ? 1 : 0;
}

static void *by_proc_address(const struct row *row) {
  void *found = NULL;
  int status = -1;
  int (*v1)(const char *, void **, int, uint64_t) = dlsym(driver, "cuGetProcAddress");
  int (*v2)(const char *, void **, int, uint64_t, int *) = dlsym(driver, "cuGetProcAddress_v2");
  if (!strcmp(route, "proc1")) return v1(row->base, &found, row->version, (uint64_t)proc_flags(row)) ? NULL : found;
  return v2(row->base, &found, row->version, (uint64_t)proc_flags(row), &status) || status ? NULL : found;
}

static bool newest(const struct row *row, int version) {
  for (size_t i = 0; i < HOOKED_COUNT; i++)
    if (!strcmp(rows[i].base, row->base) && rows[i].variant == row->variant && rows[i].version > row->version &&
        rows[i].version <= version)
      return false;
  return row->version <= version;
}

/* Three arguments before CUDA 12, four since; a fourth does no harm. It finds what is newest for its own version, other
 * rows come by version. */
static void *by_entry_point(const struct row *row) {
  void *found = NULL;
  int status = 0, version = 0;
  int (*entry)(const char *, void **, unsigned long long, int *) = dlsym(runtime, "cudaGetDriverEntryPoint");
  int (*by_version)(const char *, void **, unsigned, unsigned long long, int *) =
      dlsym(runtime, "cudaGetDriverEntryPointByVersion");
  H(cudaRuntimeGetVersion)(&version);
  if (!strcmp(route, "by-version") && by_version)
    return by_version(row->base, &found, (unsigned)row->version, (unsigned long long)row->variant, &status) ? NULL
                                                                                                            : found;
  if (!newest(row, version) || entry(row->base, &found, (unsigned long long)row->variant, &status)) return NULL;
  Dl_info info; /* drivers differ in which cuCtxCreate is the one of CUDA 12.5 to 12.9 */
  return found && dladdr(found, &info) && info.dli_sname && !strcmp(info.dli_sname, row->symbol) ? found : NULL;
}

/* The runtime's symbols have a version named after it, the driver's have none, and any will do. */
static void *by_version_name(const struct row *row, void *library) {
  const char *path = row->level == DRIVER ? NULL : getenv("COVER_RUNTIME");
  return library ? dlvsym(library, row->symbol, path ? strrchr(path, '/') + 1 : "libcuda.so.1") : NULL;
}

static void *find(const struct row *row) {
  void *library = row->level == DRIVER ? driver : runtime;
  if (!strcmp(route, "linked")) return row->linked;
  if (!strcmp(route, "default")) return dlsym(RTLD_DEFAULT, row->symbol);
  if (!strcmp(route, "next")) return dlsym(RTLD_NEXT, row->symbol);
  if (!strcmp(route, "versioned")) return by_version_name(row, library);
  if (row->level == DRIVER && (!strncmp(route, "proc", 4) || !strcmp(route, "legacy"))) return by_proc_address(row);
  if (row->level == DRIVER && (!strcmp(route, "entry") || !strcmp(route, "by-version"))) return by_entry_point(row);
  return library ? dlsym(library, row->symbol) : NULL;
}

static void resolve(void) {
  for (size_t i = 0; i < HOOKED_COUNT; i++) {
    void *library = rows[i].level == DRIVER ? driver : runtime;
    rows[i].address = find(&rows[i]);
    if (!rows[i].address && library) rows[i].address = dlsym(library, rows[i].symbol);
    else if (strcmp(route, "linked"))
      printf("%s by %s\n", rows[i].symbol, route); /* linked is also what a runtime lacks and the library has */
  }
}

static void driver_begin(void) {
  uint64_t context;
  int threshold = 4;
  uint64_t keep = ~0ull;
  void *pool;
  HELP(cuInit, 0);
  DO(cuDevicePrimaryCtxRetain, &context, 0);
  HELP(cuCtxSetCurrent, context);
  HELP(cuDeviceGetDefaultMemPool, &pool, 0);
  HELP(cuMemPoolSetAttribute, pool, threshold,
       &keep); /* the reserve changes when the program says so, and not before */
}

static void run_driver(void) {
  driver_begin();
  cover_plain();
  cover_async();
  cover_arrays();
  cover_external();
  cover_handles();
  cover_multicast();
  cover_tiled();
  cover_imports();
  cover_graphs();
  cover_captures();
  cover_code();
  cover_contexts();
  cover_green();
  cover_primary();
}

static void run_runtime(void) {
  int version = 0;
  H(cudaRuntimeGetVersion)(&version);
  cover_runtime(version);
}

/* What a runtime does not have, or what only its compiler can ask for. */
static bool optional(const char *symbol) {
  static const char *const names[] = {"cudaThreadExit", "cudaGraphAddNode", "cudaGraphAddNode_v2",
                                      "cudaGetSymbolAddress"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(symbol, names[i])) return true;
  return false;
}

static void tell_uncalled(void) {
  int level = !strcmp(wanted_level, "driver") ? DRIVER : RUNTIME;
  for (size_t i = 0; i < HOOKED_COUNT; i++) {
    if (rows[i].level != level || rows[i].calls || optional(rows[i].symbol)) continue;
    printf("%s is never called\n", rows[i].symbol);
    failed = true;
  }
}

static void peer_begin(void) {
  resolve();
  driver_begin();
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  wanted_level = argv[1];
  route = argv[2];
  setvbuf(stdout, NULL, _IOLBF, 0);
  int scope = !strcmp(route, "default") || !strcmp(route, "next") ? RTLD_GLOBAL : RTLD_LOCAL;
  const char *path = getenv("COVER_RUNTIME");
  driver = dlopen("libcuda.so.1", RTLD_NOW | scope);
  if (!driver || (path && !(runtime = dlopen(path, RTLD_NOW | scope)))) {
    printf("%s\n", dlerror());
    return 2;
  }
  cover_peer_start(peer_begin); /* before this process starts CUDA: afterwards the other one could not */
  resolve();
  if (!strcmp(wanted_level, "driver")) run_driver();
  else run_runtime();
  cover_peer_end();
  tell_uncalled();
  puts("end");
  return failed;
}
