/* Names in loaded objects: the same addresses as dlsym gives, from both kinds of hash table. */
#define _GNU_SOURCE
#include "elf/symbol.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "python/interpreter.h"

static struct mt_loaded object_of(void *handle) {
  struct link_map *map;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map)) abort();
  return (struct mt_loaded){map->l_addr, map->l_ld};
}

/* A library of many functions whose names share their hashes' low bits or nothing. */
static void *build(const char *name, const char *hash) {
  FILE *source = fopen(check_format("%s.c", name), "w");
  for (unsigned i = 0; i < 3000; i++) fprintf(source, "int fn_%u_%x(void) { return %u; }\n", i, i * 2654435761u, i);
  fprintf(source, "int data_here = 7; static int hidden(void) { return 1; } int (*uses)(void) = hidden; extern int "
                  "puts(const char *); int call(void) { return puts(\"\"); }\n");
  fclose(source);
  if (system(check_format("cc -shared -fPIC -O0 -w -Wl,--hash-style=%s %s.c -o %s.so", hash, name, name))) return NULL;
  return dlopen(check_format("./%s.so", name), RTLD_NOW | RTLD_LOCAL);
}

static void finds_all(const char *hash) {
  void *handle = build(hash, hash);
  CHECK(handle);
  if (!handle) return;
  struct mt_loaded object = object_of(handle);
  unsigned wrong = 0;
  for (unsigned i = 0; i < 3000; i++) {
    const char *name = check_format("fn_%u_%x", i, i * 2654435761u);
    int (*function)(void) = (int (*)(void))mt_symbol_find(&object, name);
    if (!function || (void *)function != dlsym(handle, name) || function() != (int)i) wrong++;
    if (mt_symbol_find(&object, check_format("fn_%u_%x_", i, i))) wrong++;
  }
  CHECK_EQ(wrong, 0);
  CHECK_EQ(mt_symbol_find(&object, "data_here"), (uintptr_t)dlsym(handle, "data_here"));
  CHECK_EQ(mt_symbol_find(&object, "hidden"), 0);
  CHECK_EQ(mt_symbol_find(&object, "puts"), 0); /* it is used here, and defined elsewhere */
  CHECK_EQ(mt_symbol_find(&object, ""), 0);
}

static void gnu(void) { finds_all("gnu"); }
static void sysv(void) { finds_all("sysv"); }
static void both(void) { finds_all("both"); }

static void system_libraries(void) {
  void *handle = dlopen("libpthread.so.0", RTLD_NOW);
  struct mt_loaded libc = object_of(dlopen("libc.so.6", RTLD_NOW)), none = {0, NULL};
  CHECK(handle);
  static const char *const names[] = {"qsort", "environ", "fopen", "getenv", "strtoul", "pthread_create"};
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++) CHECK(mt_symbol_find(&libc, names[i]));
  CHECK_EQ(mt_symbol_find(&libc, "qsort"), (uintptr_t)dlsym(dlopen("libc.so.6", RTLD_NOW), "qsort"));
  CHECK_EQ(mt_symbol_find(&libc, "no such name"), 0);
  CHECK_EQ(mt_symbol_find(&none, "qsort"), 0);
}

int main(void) {
  static const struct check_case cases[] = {
      {"gnu", gnu}, {"sysv", sysv}, {"both", both}, {"system libraries", system_libraries}};
  return check_main("symbol", cases, sizeof cases / sizeof *cases);
}
