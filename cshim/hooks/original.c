#define _GNU_SOURCE
#include "hooks/original.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/atload.h"
#include "base/thread.h"
#include "elf/foreign.h"
#include "hooks/group.h"
#include "hooks/hooks.h"
#include "hooks/query.h"
#include "hooks/unhooked.h"
#include "record/capture.h"
#include "spool/module.h"

typedef void *(*dlsym_function)(void *, const char *);

/* Read by the assembly stub in route.c. */
dlsym_function mt_dlsym_next MT_AT_LOAD __attribute__((visibility("hidden")));

#pragma weak dlvsym

static dlsym_function find_dlsym(void) {
  if (!dlvsym) return (dlsym_function)mt_foreign_find("dlsym");
  static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
  dlsym_function libc = NULL;
  for (size_t i = 0; i < sizeof versions / sizeof *versions && !libc; i++)
    libc = (dlsym_function)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
  if (!libc) return NULL;
  /* A second interposer after this one defines an unversioned dlsym, which the versioned look-up skips: chain to it. */
  dlsym_function next = (dlsym_function)libc(RTLD_NEXT, "dlsym");
  return next ? next : libc;
}

static dlsym_function next_dlsym(void) {
  dlsym_function next = __atomic_load_n(&mt_dlsym_next, __ATOMIC_ACQUIRE);
  if (!next) __atomic_store_n(&mt_dlsym_next, next = find_dlsym(), __ATOMIC_RELEASE);
  return next;
}

void mt_original_chain_dlsym(void *other) { __atomic_store_n(&mt_dlsym_next, (dlsym_function)other, __ATOMIC_RELEASE); }

bool mt_original_dlsym_ready(void) { return next_dlsym() != NULL; }

void *mt_original_dlsym(void *handle, const char *name) {
  dlsym_function next = next_dlsym();
  return next ? next(handle, name) : NULL;
}

bool mt_original_is_wrapper(void *function) {
  struct link_map *map = mt_module_find((uintptr_t)function);
  return map && map == mt_module_find((uintptr_t)&mt_slot_find);
}

static void *find_in_object(const char *path, const char *name) {
  void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return NULL;
  void *found = mt_original_dlsym(handle, name);
  dlclose(handle); /* only the count that dlopen raised */
  return found && !mt_original_is_wrapper(found) ? found : NULL;
}

void *mt_driver_symbol(const char *name) { return find_in_object("libcuda.so.1", name); }

static bool attached; /* loaded by the program: it is not in the global scope that RTLD_NEXT searches */

void mt_original_set_attached(void) { __atomic_store_n(&attached, true, __ATOMIC_RELAXED); }

/* True if object's own definition is what the program finds first: the object precedes this library, and got the
 * wrapper by RTLD_NEXT. */
static bool precedes_us(void *own, const char *name) {
  if (__atomic_load_n(&attached, __ATOMIC_RELAXED)) return false;
  void *program = dlopen(
      NULL, RTLD_LAZY | RTLD_NOLOAD); /* by a handle: RTLD_DEFAULT finds this library, which is linked with
                                         -Bsymbolic */
  if (!program) return false;
  bool first = mt_original_dlsym(program, name) == own;
  dlclose(program);
  return first;
}

/* The next definition in the global scope comes first, as for the loader, so that a second interposer is called. Not
 * where the caller fetched its function from a library and is not linked to the name: then it is given. Only between
 * two copies of CUDA does the caller's own scope decide: the loader distinguishes those by symbol versions, which are
 * lost here. An interposer that precedes this library must not get itself. */
static void *find_in_scope(struct link_map *caller, const char *name, void *given) {
  void *next = mt_original_dlsym(RTLD_NEXT, name);
  bool named = caller && caller->l_name[0]; /* the program itself is not: its scope is the global one, in which
                                               another object may precede this library */
  void *own = named || (caller && __atomic_load_n(&attached, __ATOMIC_RELAXED))
                  ? find_in_object(named ? caller->l_name : NULL, name)
                  : NULL;
  if (own && mt_module_find((uintptr_t)own) == caller && precedes_us(own, name)) return next;
  if (next && !mt_module_is_cuda((uintptr_t)next))
    return given && caller && !mt_module_imports(caller, name) ? given : next;
  if (own || next) return own ? own : next;
  return given ? NULL
               : mt_group_find(caller, name); /* a caller that has a fallback needs no search, which takes long */
}

void *mt_original_find(const char *name, uintptr_t caller) {
  return find_in_scope(mt_module_find(caller - 1), name, NULL);
}

static struct mt_slot *slots;

static void enlist(struct mt_slot *slot) {
  if (__atomic_exchange_n(&slot->listed, 1, __ATOMIC_RELAXED)) return;
  slot->next = __atomic_load_n(&slots, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&slots, &slot->next, slot, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
}

void *mt_slot_set_fallback(struct mt_slot *slot, void *real) {
  void *none = NULL;
  enlist(slot);
  __atomic_compare_exchange_n(&slot->fallback, &none, real, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return slot->fallback;
}

/* An entry that belongs to the caller may have lost its original, when a library was unloaded while it was filled. */
static void *bind_scope(struct mt_slot *slot, struct link_map *caller, void *real) {
  enlist(slot);
  for (unsigned i = 0; i < MT_SLOT_SCOPES; i++) {
    struct link_map *none = NULL, *known = __atomic_load_n(&slot->scope[i].caller, __ATOMIC_ACQUIRE);
    if (known && known != caller) continue;
    void *empty = NULL;
    if (__atomic_compare_exchange_n(&slot->scope[i].real, &empty, real, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      __atomic_compare_exchange_n(&slot->scope[i].caller, &none, caller, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    else if (!known)
      continue; /* another thread is filling it */
    break;
  }
  return real;
}

static unsigned cache_index(uintptr_t caller) { return (unsigned)(caller ^ caller >> 4) & (MT_SLOT_CACHE - 1); }

static void *cache_original(struct mt_slot *slot, uintptr_t caller, void *real) {
  unsigned i = cache_index(caller);
  uintptr_t none = 0;
  if (!__atomic_load_n(&slot->cache[i].caller, __ATOMIC_RELAXED) &&
      __atomic_compare_exchange_n(&slot->cache[i].caller, &none, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    __atomic_store_n(&slot->cache[i].real, real, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->cache[i].caller, caller, __ATOMIC_RELEASE);
  }
  return real;
}

/* Apart, so that what is known costs no saved register. */
static __attribute__((noinline)) void *search(struct mt_slot *slot, const char *name, uintptr_t caller);

void *mt_slot_find(struct mt_slot *slot, const char *name, uintptr_t caller) {
  unsigned i = cache_index(caller);
  if (MT_LIKELY(__atomic_load_n(&slot->cache[i].caller, __ATOMIC_ACQUIRE) == caller)) {
    void *real = __atomic_load_n(&slot->cache[i].real, __ATOMIC_ACQUIRE);
    if (MT_LIKELY(real && __atomic_load_n(&slot->cache[i].caller, __ATOMIC_RELAXED) == caller)) return real;
  }
  return search(slot, name, caller);
}

static void *search(struct mt_slot *slot, const char *name, uintptr_t caller) {
  struct link_map *map = mt_module_find(caller - 1);
  for (unsigned i = 0; i < MT_SLOT_SCOPES; i++) {
    struct link_map *known = __atomic_load_n(&slot->scope[i].caller, __ATOMIC_ACQUIRE);
    if (!known || known != map) continue;
    void *real = __atomic_load_n(&slot->scope[i].real, __ATOMIC_ACQUIRE);
    if (MT_LIKELY(real && __atomic_load_n(&slot->scope[i].caller, __ATOMIC_RELAXED) == map))
      return cache_original(slot, caller, real);
  }
  int error = errno;
  mt_unhooked_set_reached();
  void *given = __atomic_load_n(&slot->fallback, __ATOMIC_ACQUIRE);
  void *real = find_in_scope(map, name, given);
  if (!real) real = given;
  errno = error;
  return real && map ? bind_scope(slot, map, real) : real;
}

bool mt_slot_bind_scope(struct mt_slot *slot, const char *name, uintptr_t caller) {
  struct link_map *map = mt_module_find(caller - 1);
  int error = errno;
  void *real = find_in_scope(map, name, NULL);
  if (real) mt_unhooked_set_reached();
  errno = error;
  /* a later interposer gets its original from the loader, and must not get itself from here */
  if (real && map && (mt_module_find((uintptr_t)real) != map || mt_module_is_cuda((uintptr_t)real))) {
    enlist(slot);
    bind_scope(slot, map, real);
  }
  return real != NULL;
}

void mt_slot_bind_object(struct mt_slot *slot, uintptr_t caller, void *real) {
  struct link_map *map = mt_module_find(caller);
  if (!map) return;
  mt_unhooked_set_reached();
  enlist(slot);
  bind_scope(slot, map, real);
}

static void clear_slot(struct mt_slot *slot) {
  for (unsigned i = 0; i < MT_SLOT_SCOPES; i++) {
    __atomic_store_n(&slot->scope[i].caller, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->scope[i].real, NULL, __ATOMIC_RELEASE);
  }
  for (unsigned i = 0; i < MT_SLOT_CACHE; i++) {
    __atomic_store_n(&slot->cache[i].caller, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->cache[i].real, NULL, __ATOMIC_RELEASE);
  }
  void *fallback = __atomic_load_n(&slot->fallback, __ATOMIC_ACQUIRE);
  if (fallback && !mt_module_find((uintptr_t)fallback))
    __atomic_compare_exchange_n(&slot->fallback, &fallback, NULL, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static int read_unload_count(struct dl_phdr_info *info, size_t size, void *count) {
  (void)size;
  *(unsigned long long *)count = info->dlpi_subs;
  return 1;
}

void mt_original_drop_unloaded(void) {
  static unsigned long long seen;
  unsigned long long count = 0;
  struct mt_slot *slot = __atomic_load_n(&slots, __ATOMIC_ACQUIRE);
  if (!slot) return;
  dl_iterate_phdr(read_unload_count, &count);
  if (__atomic_exchange_n(&seen, count, __ATOMIC_RELAXED) == count) return;
  for (; slot; slot = slot->next) clear_slot(slot);
  mt_capture_invalidate(mt_module_drop_unloaded());
  mt_query_drop_unloaded();
}
