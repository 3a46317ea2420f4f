/* A program that loads the recorder by itself. Usage: starts MODE RECORDER [LIBRARY]. Each mode prints what
 * memtrace_start returned, and allocates one size of its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

typedef int (*allocate)(uint64_t *, size_t);

static const char *recorder, *library;

/* A word of the program's data that the loader fills in. */
static allocate by_data = cuMemAlloc_v2;
/* One that the program fills in. */
static allocate fetched;

static void start(void) {
  void *handle = dlopen(recorder, RTLD_NOW | RTLD_GLOBAL);
  int (*call)(void) = handle ? (int (*)(void))dlsym(handle, "memtrace_start") : NULL;
  if (!call) {
    printf("%s\n", dlerror());
    exit(2);
  }
  printf("start %d\n", call());
}

static void expect(int result, const char *what) {
  if (!result) return;
  printf("%s gives %d\n", what, result);
  exit(1);
}

static void begin(void) {
  void *context;
  expect(cuInit(0), "cuInit");
  expect(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
}

static void linked(void) {
  uint64_t p;
  start();
  begin();
  expect(cuMemAlloc_v2(&p, 12001), "cuMemAlloc");
}

/* The table of the program has its words by then. */
static void linked_and_used(void) {
  uint64_t before, p;
  begin();
  expect(cuMemAlloc_v2(&before, 12002), "cuMemAlloc");
  start();
  expect(cuMemAlloc_v2(&p, 12003), "cuMemAlloc");
  expect(cuMemFree_v2(p), "cuMemFree");
}

static void by_pointer(void) {
  uint64_t p;
  start();
  begin();
  expect(by_data(&p, 12004), "cuMemAlloc");
}

static void by_fetched_pointer(void) {
  uint64_t p;
  fetched = (allocate)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2");
  begin();
  start();
  expect(fetched(&p, 12005), "cuMemAlloc");
}

static void twice(void) {
  uint64_t p;
  start();
  start();
  begin();
  expect(cuMemAlloc_v2(&p, 12006), "cuMemAlloc");
  start();
}

/* A library that uses the runtime, loaded before or after. */
static void runtime(bool before) {
  void *user = before ? dlopen(library, RTLD_NOW) : NULL;
  start();
  if (!user) user = dlopen(library, RTLD_NOW);
  int (*use)(size_t) = user ? (int (*)(size_t))dlsym(user, "use_runtime") : NULL;
  if (!use) printf("%s\n", dlerror());
  else expect(use(12007), "cudaMalloc");
}

static void runtime_before(void) { runtime(true); }
static void runtime_after(void) { runtime(false); }

/* Libraries come and go in other threads all the while. */
static atomic_bool enough;

static void *come_and_go(void *name) {
  while (!enough) {
    void *handle = dlopen(name, RTLD_NOW);
    if (handle) dlsym(handle, "no such name"), dlclose(handle);
  }
  return NULL;
}

static void storm(void) {
  static char *const names[] = {"libm.so.6", "libresolv.so.2", "libutil.so.1", "libanl.so.1"};
  pthread_t threads[4];
  uint64_t p;
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, come_and_go, names[i]);
  start();
  begin();
  for (int i = 0; i < 2000; i++) {
    void *handle = dlopen(library, RTLD_NOW);
    int (*use)(size_t) = (int (*)(size_t))dlsym(handle, "use_runtime");
    expect(use(12008), "cudaMalloc");
    expect(cuMemAlloc_v2(&p, 12009), "cuMemAlloc");
    expect(cuMemFree_v2(p), "cuMemFree");
    if (i % 100 == 0) dlclose(handle);
  }
  enough = true;
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } modes[] = {{"linked", linked},
               {"used", linked_and_used},
               {"pointer", by_pointer},
               {"fetched", by_fetched_pointer},
               {"twice", twice},
               {"runtime-before", runtime_before},
               {"runtime-after", runtime_after},
               {"storm", storm}};
  if (argc < 3) return 2;
  recorder = argv[2];
  library = argc > 3 ? argv[3] : NULL;
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (!strcmp(modes[i].name, argv[1])) return modes[i].run(), puts("end"), 0;
  return 2;
}
