/* The ways by which programs reach the driver:  routes MODE. Each mode allocates a size of its own, so that a trace
 * tells which was seen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int (*allocate)(uint64_t *, size_t);
typedef int (*allocate_async)(uint64_t *, size_t, void *);
typedef int (*get_v1)(const char *, void **, int, uint64_t);
typedef int (*get_v2)(const char *, void **, int, uint64_t, int *);

static void *driver;

static void say(const char *what, int result) { printf("%s: %d\n", what, result); }

static int ready(int flags) {
  driver = dlopen("libcuda.so.1", RTLD_NOW | flags);
  if (!driver) return 0;
  int (*init)(unsigned) = dlsym(driver, "cuInit");
  int (*make)(void **, unsigned, int) = dlsym(driver, "cuCtxCreate_v2");
  void *context;
  return !init(0) && !make(&context, 0, 0);
}

static void by_dlsym(void) {
  uint64_t p;
  allocate call = dlsym(driver, "cuMemAlloc_v2");
  say("dlsym", call(&p, 11001));
}

static void by_default(void) {
  uint64_t p;
  allocate call = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
  if (call) say("default", call(&p, 11002));
  else printf("default: none, %s\n", dlerror() ? "with a reason" : "without a reason");
}

static void by_proc_address(void) {
  uint64_t p;
  void *f = NULL;
  int status = -1;
  get_v1 v1 = dlsym(driver, "cuGetProcAddress");
  get_v2 v2 = dlsym(driver, "cuGetProcAddress_v2");
  say("v1", v1("cuMemAlloc", &f, 11030, 0) || ((allocate)f)(&p, 11003));
  say("v2", v2("cuMemAlloc", &f, 12000, 0, &status) || status || ((allocate)f)(&p, 11004));
  say("v2 per thread", v2("cuMemAllocAsync", &f, 12000, 2, &status) || status || ((allocate_async)f)(&p, 11005, NULL));
  say("v2 legacy", v2("cuMemAllocAsync", &f, 12000, 1, &status) || status || ((allocate_async)f)(&p, 11006, NULL));
  f = NULL;
  say("v2 of itself", v2("cuGetProcAddress", &f, 12000, 0, &status) || !f);
  get_v2 again = (get_v2)f;
  say("v2 by v2", again("cuMemAlloc", &f, 12000, 0, &status) || ((allocate)f)(&p, 11007));
  f = (void *)1;
  printf("unknown name: %d, ", v2("cuNoSuchCall", &f, 12000, 0, &status) != 0);
  printf("%s, status %d\n", f ? "kept" : "null", status);
  say("old version", v2("cuMemAlloc", &f, 2000, 0, &status) != 0);
}

/* A library whose dlsym(RTLD_NEXT) must answer as if it had called the real one. */
static void by_next(const char *library) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  int (*next)(uint64_t *) = handle ? (int (*)(uint64_t *))dlsym(handle, "allocate_next") : NULL;
  uint64_t p;
  if (next) say("next", next(&p));
  else printf("next: %s\n", dlerror());
}

/* What a program learns that only looks. */
static void presence(void) {
  static const char *const names[] = {"cudaMalloc", "cuMemAlloc_v2", "cuGetProcAddress", "malloc", "no_such_name"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    dlerror();
    void *found = dlsym(RTLD_DEFAULT, names[i]);
    printf("%s: %s, %s; ", names[i], found ? "found" : "none", dlerror() ? "error" : "no error");
    found = dlsym(dlopen(NULL, RTLD_NOW), names[i]);
    printf("%s, %s\n", found ? "found" : "none", dlerror() ? "error" : "no error");
  }
}

/* Libraries that come and go: each brings its own runtime, and may be mapped where the last one was. */
static void unload(const char *first, const char *second) {
  for (int round = 0; round < 20; round++) {
    void *handle = dlopen(round % 2 ? second : first, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      printf("%s\n", dlerror());
      return;
    }
    int (*use)(size_t) = (int (*)(size_t))dlsym(handle, "use_runtime");
    printf("%d ", use(21000 + (size_t)round));
    dlclose(handle);
  }
  printf("\n");
}

/* The driver itself goes and comes back: what was found in it before is gone, or is another function now. */
static void reopen(void) {
  for (int round = 0; round < 10; round++) {
    uint64_t p;
    int (*destroy)(void *);
    void *context;
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*init)(unsigned) = dlsym(driver, "cuInit"), (*make)(void **, unsigned, int) = dlsym(driver, "cuCtxCreate_v2");
    allocate call = dlsym(driver, "cuMemAlloc_v2");
    destroy = dlsym(driver, "cuCtxDestroy_v2");
    printf("%d ", init(0) || make(&context, 0, 0) || call(&p, 41000 + (size_t)round) || destroy(context));
    dlclose(driver);
  }
  printf("\n");
}

/* Two runtimes at once. Each keeps its own last error: a failure in one must not show in the other. */
static void two_runtimes(const char *first, const char *second, int flags) {
  void *a = dlopen(first, RTLD_NOW | flags), *b = dlopen(second, RTLD_NOW | flags);
  if (!a || !b) {
    printf("%s\n", dlerror());
    return;
  }
  int (*use[2])(size_t) = {(int (*)(size_t))dlsym(a, "use_runtime"), (int (*)(size_t))dlsym(b, "use_runtime")};
  int (*last[2])(void) = {(int (*)(void))dlsym(a, "last_error"), (int (*)(void))dlsym(b, "last_error")};
  for (int i = 0; i < 2; i++) printf("%d ", use[i](31000 + (size_t)i));
  for (int i = 0; i < 2; i++) {
    int result = use[i]((size_t)1 << 50);
    int own = last[i](), other = last[!i]();
    printf("%d/%d/%d ", result, own, other);
  }
  printf("\n");
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (!strcmp(mode, "presence")) presence();
  else if (!strcmp(mode, "unload")) unload(argv[2], argv[3]);
  else if (!strcmp(mode, "reopen")) reopen();
  else if (!strcmp(mode, "two")) two_runtimes(argv[2], argv[3], RTLD_LOCAL);
  else if (!strcmp(mode, "deepbind")) two_runtimes(argv[2], argv[3], RTLD_LOCAL | RTLD_DEEPBIND);
  else if (!ready(!strcmp(mode, "default") || !strcmp(mode, "next") ? RTLD_GLOBAL : RTLD_LOCAL)) printf("no driver\n");
  else if (!strcmp(mode, "dlsym")) by_dlsym();
  else if (!strcmp(mode, "default") || !strcmp(mode, "default-local")) by_default();
  else if (!strcmp(mode, "proc")) by_proc_address();
  else if (!strcmp(mode, "next")) by_next(argv[2]);
  else return 2;
  printf("end\n");
  return 0;
}
