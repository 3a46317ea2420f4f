#define _GNU_SOURCE
#include "hooks.h"

#include <stddef.h>

#include "abi.h"
#include "call.h"

/* Every wrapper has one shape: open, the real function first and untouched, close. Out-parameters are read only on success, and a free of nothing draws no
 * number. The wrappers are exported under the real names; routes hand out the same addresses. */

static int mt_vmm_device(const struct mt_cuda_vmm_prop *prop) { return prop && prop->location_type == 1 ? prop->location_id : MT_HOST; }

#define MT_OPEN_DRIVER mt_driver_open
#define MT_OPEN_RUNTIME mt_runtime_open
#define MT_CLOSE_DRIVER mt_driver_close
#define MT_CLOSE_RUNTIME mt_runtime_close

#define MT_RELEASES_ALLOC(addr) 0
#define MT_RELEASES_MAP(addr) 0
#define MT_RELEASES_FREE(addr) ((addr) != 0)
#define MT_RELEASES_UNMAP(addr) ((addr) != 0)

/* Whether the call deserves a record at all: cudaFree(NULL) is how programs wake CUDA up. */
#define MT_COUNTS_ALLOC(addr) 1
#define MT_COUNTS_MAP(addr) 1
#define MT_COUNTS_FREE(addr) ((addr) != 0)
#define MT_COUNTS_UNMAP(addr) ((addr) != 0)

#define MT_DEVICE_ALLOC(device) (device)
#define MT_DEVICE_MAP(device) (device)
#define MT_DEVICE_FREE(device) MT_HOST /* the reader knows it from the allocation */
#define MT_DEVICE_UNMAP(device) MT_HOST

/* Frees name their block before the call; what an allocation made is known only after it succeeded. */
#define MT_ADDR_ALLOC(status, addr) ((status) ? 0 : (addr))
#define MT_ADDR_MAP(status, addr) (addr)
#define MT_ADDR_FREE(status, addr) (addr)
#define MT_ADDR_UNMAP(status, addr) (addr)

#define MT_HOOK(number, level, symbol, base, version, variant, op, memory, where, params, args, address, bytes, asked, on_stream)                         \
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
        .stream = on_stream,                                                                                                                              \
        .status = status,                                                                                                                                 \
        .device = MT_DEVICE_##op(where),                                                                                                                  \
        .kind = MT_##op,                                                                                                                                  \
        .mem = MT_MEM_##memory,                                                                                                                           \
    };                                                                                                                                                    \
    MT_CLOSE_##level(&call, &outcome);                                                                                                                    \
    return status;                                                                                                                                        \
  }
#define MT_REPORT(number, symbol, mangled, shape)
#include "hooks.def"
#undef MT_HOOK

#define MT_HOOK(number, level, symbol, base, version, variant, op, memory, where, params, args, address, bytes, asked, on_stream) \
  {#symbol, base, version, variant, (void *)symbol, &slot_##symbol},
const struct mt_hook mt_hooks[] = {
#include "hooks.def"
};
const unsigned mt_hook_count = sizeof mt_hooks / sizeof *mt_hooks;
