#define _GNU_SOURCE
#include "hooks.h"

#include <stddef.h>

#include "array.h"
#include "query.h"

/* Every wrapper has one shape: open, the real function first and untouched, close. Out-parameters are read only on success, and a free of nothing draws no
 * number. The wrappers are exported under the real names; routes hand out the same addresses. */

static int mt_vmm_device(const struct mt_cuda_vmm_prop *prop) { return prop && prop->location_type == 1 ? prop->location_id : MT_HOST; }

static int mt_pool_device(const struct mt_cuda_pool_props *props) { return props && props->location_type == 1 ? props->location_id : MT_HOST; }

/* Memory of others says nothing about its size; the driver knows. */
static uint64_t mt_range_bytes(uint64_t address) {
  int (*ask)(uint64_t *, size_t *, uint64_t) = mt_query_find(MT_QUERY_RANGE);
  uint64_t base;
  size_t size;
  return ask && !ask(&base, &size, address) ? size : 0;
}

static uint64_t mt_external_mipmap_bytes(const struct mt_cuda_external_mipmap *desc) { return desc ? mt_mipmap_bytes(&desc->array, desc->levels) : 0; }

static uint64_t mt_external_mipmap_rt_bytes(const struct mt_cuda_external_mipmap_rt *desc) {
  return desc ? mt_channels_bytes(&desc->channels, desc->extent, desc->levels, desc->flags) : 0;
}

/* A binding is a mapping into a multicast object: a key in place of the address, with the top bit that no address has. */
static uint64_t mt_binding_key(uint64_t object, uint64_t offset) { return ((object + 1) * 0x9E3779B97F4A7C15ull ^ offset) | 1ull << 63; }

#define MT_OPEN_DRIVER mt_driver_open
#define MT_OPEN_RUNTIME mt_runtime_open
#define MT_CLOSE_DRIVER mt_driver_close
#define MT_CLOSE_RUNTIME mt_runtime_close

/* The event that an operation becomes. A LABEL is none: it names the driver's events inside. */
#define MT_KIND_ALLOC MT_ALLOC
#define MT_KIND_RETAIN MT_ALLOC
#define MT_KIND_FREE MT_FREE
#define MT_KIND_NODEFREE MT_FREE
#define MT_KIND_MAP MT_MAP
#define MT_KIND_UNMAP MT_UNMAP
#define MT_KIND_CREATE MT_CREATE
#define MT_KIND_DESTROY MT_DESTROY
#define MT_KIND_LABEL 0

#define MT_WHAT_ALLOC(what) MT_MEM_##what
#define MT_WHAT_RETAIN(what) MT_MEM_##what
#define MT_WHAT_FREE(what) MT_MEM_##what
#define MT_WHAT_NODEFREE(what) MT_MEM_##what
#define MT_WHAT_MAP(what) MT_MEM_##what
#define MT_WHAT_UNMAP(what) MT_MEM_##what
#define MT_WHAT_CREATE(what) MT_OBJECT_##what
#define MT_WHAT_DESTROY(what) MT_OBJECT_##what
#define MT_WHAT_LABEL(what) 0

/* Operations that end something, whose order number is drawn before the real call. Ending nothing deserves no record at all: cudaFree(NULL) is how programs
 * wake CUDA up. */
#define MT_RELEASES_ALLOC(addr) 0
#define MT_RELEASES_RETAIN(addr) 0
#define MT_RELEASES_FREE(addr) ((addr) != 0)
#define MT_RELEASES_NODEFREE(addr) 0
#define MT_RELEASES_MAP(addr) 0
#define MT_RELEASES_UNMAP(addr) ((addr) != 0)
#define MT_RELEASES_CREATE(addr) 0
#define MT_RELEASES_DESTROY(addr) ((addr) != 0)
#define MT_RELEASES_LABEL(addr) 0

#define MT_COUNTS_ALLOC(addr) 1
#define MT_COUNTS_RETAIN(addr) 1
#define MT_COUNTS_FREE(addr) ((addr) != 0)
#define MT_COUNTS_NODEFREE(addr) ((addr) != 0)
#define MT_COUNTS_MAP(addr) 1
#define MT_COUNTS_UNMAP(addr) ((addr) != 0)
#define MT_COUNTS_CREATE(addr) 1
#define MT_COUNTS_DESTROY(addr) ((addr) != 0)
#define MT_COUNTS_LABEL(addr) 1

/* What is ended has a device that the reader knows from its beginning. */
#define MT_DEVICE_ALLOC(device) (device)
#define MT_DEVICE_RETAIN(device) MT_HOST
#define MT_DEVICE_FREE(device) MT_HOST
#define MT_DEVICE_NODEFREE(device) MT_HOST
#define MT_DEVICE_MAP(device) (device)
#define MT_DEVICE_UNMAP(device) MT_HOST
#define MT_DEVICE_CREATE(device) (device)
#define MT_DEVICE_DESTROY(device) MT_HOST
#define MT_DEVICE_LABEL(device) MT_HOST

/* Frees name their block before the call; what an allocation made is known only after it succeeded. */
#define MT_ADDR_ALLOC(status, addr) ((status) ? 0 : (addr))
#define MT_ADDR_RETAIN(status, addr) ((status) ? 0 : (addr))
#define MT_ADDR_FREE(status, addr) (addr)
#define MT_ADDR_NODEFREE(status, addr) (addr)
#define MT_ADDR_MAP(status, addr) (addr)
#define MT_ADDR_UNMAP(status, addr) (addr)
#define MT_ADDR_CREATE(status, addr) ((status) ? 0 : (addr))
#define MT_ADDR_DESTROY(status, addr) (addr)
#define MT_ADDR_LABEL(status, addr) 0

#define MT_FLAGS_ALLOC 0
#define MT_FLAGS_RETAIN MT_FLAG_REFERENCE
#define MT_FLAGS_FREE 0
#define MT_FLAGS_NODEFREE 0
#define MT_FLAGS_MAP 0
#define MT_FLAGS_UNMAP 0
#define MT_FLAGS_CREATE 0
#define MT_FLAGS_DESTROY 0
#define MT_FLAGS_LABEL 0

#define MT_HOOK(number, level, symbol, base, version, variant, op, what, where, params, args, address, bytes, asked, within)                              \
  static struct mt_slot slot_##symbol;                                                                                                                    \
  MT_EXPORT int symbol params;                                                                                                                            \
  MT_EXPORT int symbol params {                                                                                                                           \
    uintptr_t caller = (uintptr_t)__builtin_return_address(0);                                                                                            \
    int(*real) params = mt_slot_find(&slot_##symbol, #symbol, caller);                                                                                    \
    if (MT_UNLIKELY(!real)) return MT_CUDA_UNKNOWN;                                                                                                       \
    if (!MT_COUNTS_##op(address)) return real args;                                                                                                       \
    struct mt_call call;                                                                                                                                  \
    MT_OPEN_##level(&call, number, caller, MT_RELEASES_##op(address));                                                                                    \
    int status = real args;                                                                                                                               \
    if (MT_UNLIKELY(!call.self)) return status;                                                                                                           \
    struct mt_outcome outcome = {                                                                                                                         \
        .addr = MT_ADDR_##op(status, address),                                                                                                            \
        .size = status ? (uint64_t)(asked) : (uint64_t)(bytes),                                                                                           \
        .with = within,                                                                                                                                   \
        .status = status,                                                                                                                                 \
        .device = MT_DEVICE_##op(where),                                                                                                                  \
        .kind = MT_KIND_##op,                                                                                                                             \
        .mem = MT_WHAT_##op(what),                                                                                                                        \
        .flags = MT_FLAGS_##op,                                                                                                                           \
    };                                                                                                                                                    \
    MT_CLOSE_##level(&call, &outcome);                                                                                                                    \
    return status;                                                                                                                                        \
  }
#define MT_CUSTOM(number, level, symbol, base, version, variant)
#define MT_REPORT(number, symbol, mangled, shape)
#include "hooks.def"
#undef MT_HOOK
#undef MT_CUSTOM

/* The wrappers written elsewhere, by address only. */
#define MT_HOOK(...)
#define MT_CUSTOM(number, level, symbol, base, version, variant) \
  extern const char mt_entry_##symbol[] __asm__(#symbol);        \
  extern struct mt_slot mt_slot_##symbol;
#include "hooks.def"
#undef MT_HOOK
#undef MT_CUSTOM

#define MT_HOOK(number, level, symbol, base, version, variant, op, what, where, params, args, address, bytes, asked, within) \
  {#symbol, base, version, variant, (void *)symbol, &slot_##symbol},
#define MT_CUSTOM(number, level, symbol, base, version, variant) {#symbol, base, version, variant, (void *)mt_entry_##symbol, &mt_slot_##symbol},
const struct mt_hook mt_hooks[] = {
#include "hooks.def"
};
const unsigned mt_hook_count = sizeof mt_hooks / sizeof *mt_hooks;
