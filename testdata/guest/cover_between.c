/* Somebody else's interposer, preloaded before or after the library. Built with BY_HANDLE it finds the functions in the
 * libraries that define them, as wrappers of the driver do, otherwise behind itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

static int calls, depth;

static void *original(const char *library, const char *name) {
#ifdef BY_HANDLE
  void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  return handle ? dlsym(handle, name) : NULL;
#else
  (void)library;
  return dlsym(RTLD_NEXT, name);
#endif
}

#define BETWEEN(library, name, params, args)                     \
  int name params;                                               \
  int name params {                                              \
    int(*next) params = (int(*) params)original(library, #name); \
    if (depth > 8) return 997; /* round and round */             \
    depth++;                                                     \
    calls++;                                                     \
    int status = next ? next args : 998;                         \
    depth--;                                                     \
    return status;                                               \
  }
BETWEEN("libcuda.so.1", cuMemAlloc_v2, (uint64_t *out, size_t size), (out, size))
BETWEEN("libcuda.so.1", cuMemFree_v2, (uint64_t address), (address))
BETWEEN("libcuda.so.1", cuMemCreate, (uint64_t *out, size_t size, const void *property, unsigned long long flags),
        (out, size, property, flags))
BETWEEN("libcuda.so.1", cuCtxDestroy_v2, (void *context), (context))
BETWEEN("libcudart.so.12", cudaMalloc, (void **out, size_t size), (out, size))
BETWEEN("libcudart.so.12", cudaFree, (void *address), (address))

__attribute__((destructor)) static void report(void) { fprintf(stderr, "in between: %d calls\n", calls); }
