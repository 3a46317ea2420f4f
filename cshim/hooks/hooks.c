#define _GNU_SOURCE
#include "hooks/hooks.h"

#include <stdbool.h>
#include <stddef.h>

#include "hooks/array.h"
#include "hooks/query.h"

/* Every wrapper has one shape: open, the real function first and untouched, close. Out-parameters are read only on
 * success, and a free of nothing draws no number. The wrappers are exported under the real names; routes hand out the
 * same addresses. */

static int mt_vmm_device(const struct mt_cuda_vmm_prop *prop) {
  return prop && prop->location_type == 1 ? prop->location_id : MT_HOST;
}

/* Imported memory has no size argument; the driver knows its size. */
static uint64_t mt_range_bytes(uint64_t address) {
  int (*query)(uint64_t *, size_t *, uint64_t) = mt_query_find(MT_QUERY_RANGE);
  uint64_t base;
  size_t size;
  return query && !query(&base, &size, address) ? size : 0;
}

static uint64_t mt_external_mipmap_bytes(const struct mt_cuda_external_mipmap *desc) {
  return desc ? mt_mipmap_bytes(&desc->array, desc->levels) : 0;
}

static uint64_t mt_external_mipmap_rt_bytes(const struct mt_cuda_external_mipmap_rt *desc) {
  return desc ? mt_channels_bytes(&desc->channels, desc->extent, desc->levels, desc->flags) : 0;
}

/* A binding is a mapping into a multicast object: a key in place of the address, with the top bit that no address has.
 */
static uint64_t mt_binding_key(uint64_t object, uint64_t offset) {
  return ((object + 1) * 0x9E3779B97F4A7C15ull ^ offset) | 1ull << 63;
}

#define MT_OPEN_DRIVER mt_driver_open
#define MT_OPEN_RUNTIME mt_runtime_open
#define MT_OPEN_DRIVER_LATE mt_driver_open_late
#define MT_OPEN_RUNTIME_LATE mt_runtime_open_late
#define MT_CLOSE_DRIVER mt_driver_close
#define MT_CLOSE_RUNTIME mt_runtime_close

struct mt_op {
  uint8_t kind, what; /* of the event; kind 0: none, the call only names the driver's events inside */
  uint8_t flags;
  bool makes;  /* its subject is known only on success */
  bool ends;   /* known before; ending nothing is not recorded: programs call cudaFree(NULL) to initialise CUDA */
  bool early;  /* the order number is drawn before the real call */
  bool placed; /* the device is an argument; a block that ends has the device of its beginning */
};
#define MT_OP_ALLOC(mem) {MT_ALLOC, MT_MEM_##mem, .makes = true, .placed = true}
#define MT_OP_RETAIN(mem) {MT_ALLOC, MT_MEM_##mem, MT_FLAG_REFERENCE, .makes = true}
#define MT_OP_FREE(mem) {MT_FREE, MT_MEM_##mem, .ends = true, .early = true}
#define MT_OP_NODEFREE(mem) {MT_FREE, MT_MEM_##mem, .ends = true}
#define MT_OP_MAP(mem) {MT_MAP, MT_MEM_##mem, .placed = true}
#define MT_OP_UNMAP(mem) {MT_UNMAP, MT_MEM_##mem, .ends = true, .early = true}
#define MT_OP_CREATE(object) {MT_CREATE, MT_OBJECT_##object, .makes = true, .placed = true}
#define MT_OP_DESTROY(object) {MT_DESTROY, MT_OBJECT_##object, .ends = true, .early = true}
#define MT_OP_LABEL(none) {0}

#define MT_HOOK(number, level, symbol, base, version, variant, operation, subject, where, params, args, address, \
                bytes, asked, related_to) \
  MT_HOOKED(symbol, params) { \
    const struct mt_op op = MT_OP_##operation(subject); \
    MT_HOOKED_REAL(symbol); \
    if ((op.ends && !(address)) || mt_recorder_is_off()) return real args; \
    struct mt_call call; \
    MT_OPEN_##level(&call, number, __builtin_frame_address(0), op.early); \
    int status = real args; \
    if (MT_UNLIKELY(!call.self) && !MT_OPEN_##level##_LATE(&call, status)) return status; \
    struct mt_outcome outcome = { \
        .addr = op.makes && status ? 0 : (address), \
        .size = status ? (uint64_t)(asked) : (uint64_t)(bytes), \
        .related = related_to, \
        .status = status, \
        .device = op.placed ? (where) : MT_HOST, \
        .kind = op.kind, \
        .mem = op.what, \
        .flags = op.flags, \
    }; \
    MT_CLOSE_##level(&call, &outcome); \
    return status; \
  }
#define MT_CUSTOM(number, level, symbol, base, version, variant)
#define MT_REPORT(number, symbol, mangled, shape)
#include "hooks.def"
#undef MT_HOOK
#undef MT_CUSTOM

/* The wrappers written elsewhere, by address only. */
#define MT_HOOK(...)
#define MT_CUSTOM(number, level, symbol, ...) extern const char mt_entry_##symbol[] __asm__(#symbol);
#include "hooks.def"
#undef MT_HOOK
#undef MT_CUSTOM

struct mt_slot mt_slots[MT_ROWS];

#define MT_HOOK(number, level, symbol, base, version, variant, ...) {#symbol, base, version, variant},
#define MT_CUSTOM(number, level, symbol, base, version, variant) {#symbol, base, version, variant},
const struct mt_hook mt_hooks[MT_ROWS] = {
#include "hooks.def"
};
#undef MT_HOOK
#undef MT_CUSTOM

/* A name that fills its place would have no end. */
#define MT_HOOK(number, level, symbol, ...) _Static_assert(sizeof #symbol <= MT_NAME_SIZE, #symbol);
#define MT_CUSTOM(number, level, symbol, ...) _Static_assert(sizeof #symbol <= MT_NAME_SIZE, #symbol);
#include "hooks.def"
#undef MT_HOOK
#undef MT_CUSTOM

#define MT_HOOK(number, level, symbol, ...) case MT_ROW_##symbol: return (void *)symbol;
#define MT_CUSTOM(number, level, symbol, ...) case MT_ROW_##symbol: return (void *)mt_entry_##symbol;
void *mt_hook_wrapper(enum mt_row row) {
  switch (row) {
#include "hooks.def"
    case MT_ROWS: break;
  }
  return NULL;
}
