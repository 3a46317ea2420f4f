#define _GNU_SOURCE
/* The two routes by which programs get driver functions without naming them to the linker: dlsym and cuGetProcAddress
 * (CUDA Driver API, "Driver Entry Point Access"). Both hand out wrappers for the functions in the hook list, and
 * nothing else. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "attach/pointers.h"
#include "attach/rebind.h"
#include "base/thread.h"
#include "hooks/hooks.h"
#include "hooks/query.h"
#include "hooks/unhooked.h"
#include "spool/module.h"

/* The newest CUDA whose ABIs hooks.def is known to describe; a newer request is compared with what this version would
 * get. */
#define MT_KNOWN_CUDA 13050

MT_EXPORT int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);
MT_EXPORT int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status);

typedef int (*get_v1)(const char *, void **, int, uint64_t);
typedef int (*get_v2)(const char *, void **, int, uint64_t, int *);

static struct mt_slot slot_v1, slot_v2;

/* The real function behind a call, in one of its two forms. */
struct getter {
  get_v1 v1;
  get_v2 v2;
};

static void *call_getter(const struct getter *real, const char *base, int version, uint64_t flags) {
  void *found = NULL;
  int status,
      refused = real->v2 ? real->v2(base, &found, version, flags, &status) : real->v1(base, &found, version, flags);
  return refused ? NULL : found;
}

/* The row whose ABI a request for version and flags means: the newest that is not newer than the request; MT_ROWS for
 * none. */
static enum mt_row best_row(const char *base, int version, uint64_t flags) {
  enum mt_row best = MT_ROWS;
  for (enum mt_row row = 0; row < MT_ROWS; row++) {
    const struct mt_hook *hook = &mt_hooks[row], *before = &mt_hooks[best];
    if (strcmp(hook->base, base) || hook->version > version) continue;
    if (hook->variant && hook->variant != (int)(flags & 3)) continue;
    if (best == MT_ROWS || hook->version > before->version || hook->variant > before->variant) best = row;
  }
  return best;
}

/* The row that found is the original of, MT_ROWS for none. Drivers differ in the version from which a base name means a
 * new ABI (cuCtxCreate between 12.5 and 12.9), so the function's address decides where it is the exported one. */
static enum mt_row row_of(const char *base, const void *found, int version, uint64_t flags) {
  enum mt_row best = best_row(base, version, flags);
  if (best != MT_ROWS && mt_driver_symbol(mt_hooks[best].symbol) == found) return best;
  for (enum mt_row row = 0; row < MT_ROWS; row++)
    if (!strcmp(mt_hooks[row].base, base) && mt_driver_symbol(mt_hooks[row].symbol) == found) return row;
  return best;
}

/* Whether found can be the function that the row describes, though the program requested a version that the rows do not
 * cover: the exported function, or what the driver returns for the row's own version. */
static bool is_known(enum mt_row row, void *found, uint64_t flags, const struct getter *real) {
  const struct mt_hook *hook = &mt_hooks[row];
  return mt_driver_symbol(hook->symbol) == found || call_getter(real, hook->base, hook->version, flags) == found;
}

/* What the caller gets in place of found. */
static void *wrap(const char *symbol, void *found, int version, uint64_t flags, const struct getter *real) {
  mt_unhooked_set_reached();
  if (symbol[0] != 'c' || symbol[1] != 'u' || mt_original_is_wrapper(found)) return found;
  if (!strcmp(symbol, "cuGetProcAddress")) {
    bool v2 = version >= 12000;
    mt_slot_set_fallback(v2 ? &slot_v2 : &slot_v1, found);
    return v2 ? (void *)cuGetProcAddress_v2 : (void *)cuGetProcAddress;
  }
  enum mt_row row = row_of(symbol, found, version, flags);
  if (row == MT_ROWS) return found;
  if (version > MT_KNOWN_CUDA && !is_known(row, found, flags, real)) return mt_unhooked_add(symbol, version), found;
  mt_slot_set_fallback(&mt_slots[row], found);
  return mt_hook_wrapper(row);
}

/* A program that uses cuGetProcAddress may have no other way to driver functions, nor has this library: the functions
 * that every event needs are fetched as well. */
static void fetch_queries(const struct getter *real) {
  for (enum mt_query i = MT_QUERY_CONTEXT; i <= MT_QUERY_DEVICE; i++) {
    int version;
    const char *base = mt_query_base(i, &version);
    if (!mt_query_known(i)) mt_query_set(i, call_getter(real, base, version, 0));
  }
}

static int wrap_result(int result, const char *symbol, void **function, int version, uint64_t flags,
                       const struct getter *real) {
  if (result || !symbol || !function || !*function) return result;
  int error = errno;
  fetch_queries(real);
  *function = wrap(symbol, *function, version, flags, real);
  errno = error;
  return result;
}

MT_EXPORT int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags) {
  get_v1 real = (get_v1)mt_slot_find(&slot_v1, "cuGetProcAddress", (uintptr_t)__builtin_return_address(0));
  if (!real) return CUDA_ERROR_UNKNOWN;
  return wrap_result(real(symbol, function, version, flags), symbol, function, version, flags,
                     &(struct getter){.v1 = real});
}

MT_EXPORT int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status) {
  get_v2 real = (get_v2)mt_slot_find(&slot_v2, "cuGetProcAddress_v2", (uintptr_t)__builtin_return_address(0));
  if (!real) return CUDA_ERROR_UNKNOWN;
  return wrap_result(real(symbol, function, version, flags, status), symbol, function, version, flags,
                     &(struct getter){.v2 = real});
}

/* The slot and the wrapper of a name, NULL if it is not hooked. */
static struct mt_slot *slot_of(const char *name, void **wrapper) {
  if (!strcmp(name, "cuGetProcAddress")) return *wrapper = (void *)cuGetProcAddress, &slot_v1;
  if (!strcmp(name, "cuGetProcAddress_v2")) return *wrapper = (void *)cuGetProcAddress_v2, &slot_v2;
  for (enum mt_row row = 0; row < MT_ROWS; row++)
    if (!strcmp(mt_hooks[row].symbol, name)) return *wrapper = mt_hook_wrapper(row), &mt_slots[row];
  return NULL;
}

/* What the stub turns into NULL. */
#define MT_ABSENT ((void *)-1)

/* The loader finds the wrapper in every process, even without CUDA. A program that tests for a symbol must not find it:
 * a failing look-up sets the error text, too. */
static void *fail_lookup(const char *name) {
  mt_original_dlsym(RTLD_NEXT, name);
  return MT_ABSENT;
}

#pragma weak dlinfo

/* What dlmopen has loaded is a second CUDA, with a state of its own. A program that has the first one, too, would be
 * led to that by the wrapper, which it shares. */
static bool in_other_namespace(void *handle) {
  Lmid_t namespace;
  return handle != RTLD_DEFAULT && handle != RTLD_NEXT && dlinfo && !dlinfo(handle, RTLD_DI_LMID, &namespace) &&
         namespace != LM_ID_BASE;
}

/* Called by the dlsym stub. Returns the wrapper to hand out, MT_ABSENT, or NULL: then the stub jumps to the real dlsym,
 * which sees the real caller. What RTLD_NEXT and RTLD_DEFAULT find depends on that caller, and a second copy of the
 * runtime must not be confused with the first. */
__attribute__((used, visibility("hidden"))) void *mt_route_dlsym(void *handle, const char *name, uintptr_t caller);
__attribute__((used, visibility("hidden"))) void *mt_route_dlsym(void *handle, const char *name, uintptr_t caller) {
  if (!mt_original_dlsym_ready()) return NULL;
  mt_rebind_new(); /* rebinds what was loaded since */
  void *wrapper;
  if (!name || name[0] != 'c' || name[1] != 'u') return NULL;
  struct mt_slot *slot = slot_of(name, &wrapper);
  if (!slot) return NULL;
  void *real = handle == RTLD_NEXT ? wrapper : mt_original_dlsym(handle, name);
  if (!real || in_other_namespace(handle)) return NULL;
  if (mt_original_is_wrapper(real)) return mt_slot_bind_scope(slot, name, caller) ? NULL : fail_lookup(name);
  return handle != RTLD_DEFAULT && mt_module_is_cuda((uintptr_t)real) && mt_slot_set_fallback(slot, real) == real
             ? wrapper
             : NULL;
}

/* The old value of a word that is rebound is its object's original, unless it is the object's own lazy-binding stub:
 * then the object's scope decides. */
static bool should_rebind(const struct mt_relocation *word, void *original) {
  void *wrapper;
  struct mt_slot *slot = word->name[0] == 'c' && word->name[1] == 'u' ? slot_of(word->name, &wrapper) : NULL;
  struct link_map *target = mt_module_find((uintptr_t)original);
  bool resolved = target && target != mt_module_find((uintptr_t)word->word);
  if (resolved && slot) mt_slot_bind_object(slot, (uintptr_t)word->word, original);
  if (resolved && !strcmp(word->name, "dlsym")) mt_original_chain_dlsym(original);
  return word->table || (slot && mt_module_is_cuda((uintptr_t)original));
}

bool mt_route_rebind(void) {
  mt_original_set_attached();
  return mt_rebind_start(should_rebind);
}

/* Keeps the list sorted. Two names of one function have the same address: the second one is dropped. */
static unsigned add_pointer(struct mt_pointer *list, unsigned count, struct mt_slot *slot, const char *name,
                            void *wrapper) {
  void *original = mt_driver_symbol(name);
  unsigned at = count;
  if (!original) return count;
  for (; at && list[at - 1].original > (uintptr_t)original; at--) list[at] = list[at - 1];
  if (at && list[at - 1].original == (uintptr_t)original) {
    for (; at < count; at++) list[at] = list[at + 1];
    return count;
  }
  list[at] = (struct mt_pointer){(uintptr_t)original, (uintptr_t)wrapper};
  mt_slot_set_fallback(slot, original);
  return count + 1;
}

unsigned mt_route_replace(void) {
  struct mt_pointer list[MT_ROWS + 3];
  unsigned count = add_pointer(list, 0, &slot_v1, "cuGetProcAddress", (void *)cuGetProcAddress);
  count = add_pointer(list, count, &slot_v2, "cuGetProcAddress_v2", (void *)cuGetProcAddress_v2);
  for (enum mt_row row = 0; row < MT_ROWS; row++)
    if (mt_hooks[row].base[0])
      count = add_pointer(list, count, &mt_slots[row], mt_hooks[row].symbol, mt_hook_wrapper(row));
  return mt_pointers_replace(list, count);
}

/* Libraries come and go, and with them the originals that wrappers remember. */
MT_EXPORT int dlclose(void *handle);
MT_EXPORT int dlclose(void *handle) {
  static int (*next)(void *);
  int (*real)(void *) = __atomic_load_n(&next, __ATOMIC_RELAXED);
  if (!real) __atomic_store_n(&next, real = (int (*)(void *))mt_original_dlsym(RTLD_NEXT, "dlclose"), __ATOMIC_RELAXED);
  if (!real) return -1;
  int result = real(handle);
  int error = errno;
  mt_original_drop_unloaded();
  errno = error;
  return result;
}

/* A true tail jump: with an ordinary call the C library would see this library as the caller, and RTLD_NEXT and
 * RTLD_DEFAULT would break for every library. */
#if defined(__x86_64__)
__asm__(
    ".text\n"
    ".globl dlsym\n"
    ".type dlsym, @function\n"
    ".p2align 4\n"
    "dlsym:\n"
    "  .cfi_startproc\n"
    "  endbr64\n"
    "  movq (%rsp), %rdx\n"
    "  pushq %rdi\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  pushq %rsi\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  subq $8, %rsp\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  call mt_route_dlsym\n"
    "  addq $8, %rsp\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  popq %rsi\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  popq %rdi\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  testq %rax, %rax\n"
    "  jne 1f\n"
    "  jmp *mt_dlsym_next(%rip)\n"
    "1: cmpq $-1, %rax\n"
    "  jne 2f\n"
    "  xorl %eax, %eax\n"
    "2: ret\n"
    "  .cfi_endproc\n"
    ".size dlsym, .-dlsym\n");
#elif defined(__aarch64__)
__asm__(
    ".text\n"
    ".globl dlsym\n"
    ".type dlsym, %function\n"
    ".p2align 4\n"
    "dlsym:\n"
    "  .cfi_startproc\n"
    "  stp x0, x1, [sp, #-32]!\n"
    "  .cfi_adjust_cfa_offset 32\n"
    "  str x30, [sp, #16]\n"
    "  .cfi_offset x30, -16\n"
    "  mov x2, x30\n"
    "  bl mt_route_dlsym\n"
    "  mov x9, x0\n"
    "  ldr x30, [sp, #16]\n"
    "  .cfi_restore x30\n"
    "  ldp x0, x1, [sp], #32\n"
    "  .cfi_adjust_cfa_offset -32\n"
    "  cbnz x9, 1f\n"
    "  adrp x16, mt_dlsym_next\n"
    "  ldr x16, [x16, #:lo12:mt_dlsym_next]\n"
    "  br x16\n"
    "1: cmn x9, #1\n"
    "  csel x0, xzr, x9, eq\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size dlsym, .-dlsym\n");
#else
#error "write the dlsym stub for this architecture"
#endif
