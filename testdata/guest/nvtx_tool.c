/* Somebody else's NVTX tool, and a getenv of somebody else's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void (*function)(void);
struct callbacks {
  size_t size;
  int (*table_of)(uint32_t module, function ***table, unsigned *size);
};

static int pushes;

static int push(const char *name) { return pushes++, (void)name, 40; }

#ifdef TOOL
int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t));
int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t)) {
  const struct callbacks *callbacks = export_table(1);
  function **table;
  unsigned size;
  if (!callbacks->table_of(1, &table, &size)) return 0;
  *table[9] = (function)(void *)push;
  return 1;
}

__attribute__((destructor)) static void report(void) { fprintf(stderr, "other tool: %d pushes\n", pushes); }
#else
/* Calls by name count; the loader's own and the C library's internal ones never come here. */
char *getenv(const char *name);
char *getenv(const char *name) {
  char *(*next)(const char *) = (char *(*)(const char *))dlsym(RTLD_NEXT, "getenv");
  pushes += !strcmp(name, "NVTX_EMPTY");
  (void)push;
  return next(name);
}

__attribute__((destructor)) static void report(void) { fprintf(stderr, "other getenv: %d calls\n", pushes); }
#endif
