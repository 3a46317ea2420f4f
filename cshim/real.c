#define _GNU_SOURCE
#include "real.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "module.h"

typedef void *(*dlsym_function)(void *, const char *);

/* Read by the assembly stub in route.c. */
dlsym_function mt_dlsym_next __attribute__((visibility("hidden")));

static dlsym_function find_dlsym(void) {
  static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
  dlsym_function libc = NULL;
  for (size_t i = 0; i < sizeof versions / sizeof *versions && !libc; i++) libc = (dlsym_function)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
  if (!libc) return NULL;
  /* A second interposer behind us defines an unversioned dlsym, which the versioned look-up skips: chain to it. */
  dlsym_function next = (dlsym_function)libc(RTLD_NEXT, "dlsym");
  return next ? next : libc;
}

bool mt_real_ready(void) {
  if (!__atomic_load_n(&mt_dlsym_next, __ATOMIC_ACQUIRE)) __atomic_store_n(&mt_dlsym_next, find_dlsym(), __ATOMIC_RELEASE);
  return mt_dlsym_next != NULL;
}

void *mt_real_dlsym(void *handle, const char *name) { return mt_real_ready() ? mt_dlsym_next(handle, name) : NULL; }

static bool ours(void *function) {
  struct link_map *map = mt_module_find((uintptr_t)function);
  return map && map == mt_module_find((uintptr_t)&mt_slot_find);
}

static void *from_object(const char *path, const char *name) {
  void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return NULL;
  void *found = mt_real_dlsym(handle, name);
  dlclose(handle); /* only the count that dlopen raised */
  return found && !ours(found) ? found : NULL;
}

void *mt_driver_symbol(const char *name) { return from_object("libcuda.so.1", name); }

/* The scope of the calling object; for the main program and its like the global scope behind us. */
static void *from_scope(struct link_map *caller, const char *name) {
  void *found = caller && caller->l_name[0] ? from_object(caller->l_name, name) : NULL;
  return found ? found : mt_real_dlsym(RTLD_NEXT, name);
}

void *mt_slot_learn(struct mt_slot *slot, void *real) {
  void *none = NULL;
  __atomic_compare_exchange_n(&slot->fallback, &none, real, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return slot->fallback;
}

static void *remember(struct mt_slot *slot, struct link_map *caller, void *real) {
  for (unsigned i = 0; i < MT_SLOT_SCOPES; i++) {
    struct link_map *none = NULL;
    if (slot->scope[i].caller) continue;
    void *empty = NULL;
    if (!__atomic_compare_exchange_n(&slot->scope[i].real, &empty, real, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
    __atomic_compare_exchange_n(&slot->scope[i].caller, &none, caller, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    break;
  }
  return real;
}

void *mt_slot_find(struct mt_slot *slot, const char *name, uintptr_t caller) {
  struct link_map *map = mt_module_find(caller - 1);
  for (unsigned i = 0; i < MT_SLOT_SCOPES; i++) {
    struct link_map *known = __atomic_load_n(&slot->scope[i].caller, __ATOMIC_ACQUIRE);
    if (known && known == map) return slot->scope[i].real;
  }
  int error = errno;
  void *real = from_scope(map, name);
  if (!real) real = __atomic_load_n(&slot->fallback, __ATOMIC_ACQUIRE);
  errno = error;
  return real && map ? remember(slot, map, real) : real;
}
