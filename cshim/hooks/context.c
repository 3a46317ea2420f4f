#define _GNU_SOURCE
#include "hooks/context.h"

#include "base/wake.h"
#include "hooks/call.h"
#include "hooks/hooks.h"
#include "hooks/probe.h"
#include "hooks/query.h"

#define MT_CONTEXTS 256u
#define MT_DEVICES 64

/* Entries are claimed by their handle and never move. A full table keeps its entries: later contexts are then noticed
 * again and again, which costs records, not accuracy. */
static struct known {
  uint64_t context; /* 0: unused; of a green context there are two, its own handle and that under which it is current */
  uint64_t green;   /* of the latter: the former */
  int32_t device;
  enum mt_context_kind kind;
} known[MT_CONTEXTS];
uint64_t mt_devices_seen;
static uint64_t generation = 1; /* bumped when a context ends: threads then query their context again */

void mt_context_start(void) { mt_context_remove(0, -1); }

static bool is_known(uint64_t context, unsigned before) {
  for (unsigned i = 0; i < before; i++)
    if (__atomic_load_n(&known[i].context, __ATOMIC_ACQUIRE) == context) return true;
  return false;
}

/* Free entries lie between used ones, so that two threads may claim one each for the same context: the first entry
 * counts. */
bool mt_context_add(uint64_t context, int device, enum mt_context_kind kind) {
  if (!context || is_known(context, MT_CONTEXTS)) return false;
  mt_context_note_device(device);
  for (unsigned i = 0; i < MT_CONTEXTS; i++) {
    uint64_t none = 0;
    if (!__atomic_compare_exchange_n(&known[i].context, &none, context, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      if (none == context) return false;
      continue;
    }
    if (is_known(context, i)) {
      __atomic_store_n(&known[i].context, 0, __ATOMIC_RELEASE);
      return false;
    }
    __atomic_store_n(&known[i].green, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&known[i].kind, kind, __ATOMIC_RELAXED);
    __atomic_store_n(&known[i].device, device, __ATOMIC_RELEASE);
    mt_probe_devices();
    mt_wake_sampler(MT_OCCASION_CONTEXT);
    return true;
  }
  return true;
}

static bool matches(const struct known *entry, uint64_t context, int device) {
  if (context) return __atomic_load_n(&entry->context, __ATOMIC_RELAXED) == context;
  return device < 0 || (__atomic_load_n(&entry->device, __ATOMIC_RELAXED) == device &&
                        __atomic_load_n(&entry->kind, __ATOMIC_RELAXED) == MT_CONTEXT_PRIMARY);
}

void mt_context_remove(uint64_t context, int device) {
  for (unsigned i = 0; i < MT_CONTEXTS; i++)
    if (matches(&known[i], context, device)) __atomic_store_n(&known[i].context, 0, __ATOMIC_RELEASE);
  __atomic_add_fetch(&generation, 1, __ATOMIC_RELEASE);
}

int mt_context_device(uint64_t context, int otherwise) {
  for (unsigned i = 0; i < MT_CONTEXTS; i++) {
    int device = __atomic_load_n(&known[i].device, __ATOMIC_RELAXED);
    if (__atomic_load_n(&known[i].context, __ATOMIC_ACQUIRE) == context) return device == MT_HOST ? otherwise : device;
  }
  return otherwise;
}

void mt_context_devices(void (*visit)(int device, void *argument), void *argument) {
  uint64_t seen = 0;
  for (unsigned i = 0; i < MT_CONTEXTS; i++) {
    int device = __atomic_load_n(&known[i].device, __ATOMIC_RELAXED);
    if (!__atomic_load_n(&known[i].context, __ATOMIC_ACQUIRE) || device < 0 || device >= MT_DEVICES ||
        seen >> device & 1)
      continue;
    seen |= 1ull << device;
    visit(device, argument);
  }
}

/* The primary context of a green context's device, or the green context itself where that was never seen: then it takes
 * its place. */
static uint64_t owner_of(uint64_t context, int device, bool *is_new) {
  uint64_t primary = 0;
  bool green = false;
  for (unsigned i = 0; i < MT_CONTEXTS; i++) {
    uint64_t have = __atomic_load_n(&known[i].context, __ATOMIC_ACQUIRE);
    enum mt_context_kind kind = __atomic_load_n(&known[i].kind, __ATOMIC_RELAXED);
    if (have == context) green = kind == MT_CONTEXT_GREEN;
    else if (have && kind == MT_CONTEXT_PRIMARY && __atomic_load_n(&known[i].device, __ATOMIC_RELAXED) == device)
      primary = have;
  }
  if (!green) return context;
  *is_new = !primary;
  return primary ? primary : context;
}

int mt_context_current(struct mt_thread *self, uint16_t api, uintptr_t caller, uint64_t *context) {
  uint64_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
  int device;
  *context = 0;
  if (mt_query_current_context(context)) return mt_query_current_device(&device) ? MT_HOST : device;
  if (!*context) return MT_HOST;
  if (MT_LIKELY(self->context == *context && self->context_generation == now)) {
    *context = self->context_owner;
    return self->context_device;
  }
  if (mt_query_current_device(&device)) return MT_HOST;
  bool is_new = mt_context_add(*context, device, MT_CONTEXT_PRIMARY);
  uint64_t owner = is_new ? *context : owner_of(*context, device, &is_new);
  if (is_new) {
    const struct mt_outcome noticed = {
        .kind = MT_CREATE, .mem = MT_OBJECT_CONTEXT, .addr = *context, .device = device, .flags = MT_FLAG_NOTICED};
    mt_call_record_extra(self, api, caller, &noticed);
  }
  self->context = *context;
  self->context_owner = *context = owner;
  self->context_device = device;
  self->context_generation = now;
  return device;
}

/* Whether the device's primary context is alive. When in doubt it is: then nothing is believed to be gone. */
static bool primary_alive(int device) {
  int (*query)(int, unsigned *, int *) = mt_query_find(MT_QUERY_PRIMARY_STATE);
  unsigned flags;
  int active = 1;
  return !query || query(device, &flags, &active) || active;
}

/* A primary context was released: perhaps its last reference. */
static struct mt_outcome primary_released(int device, int status) {
  struct mt_outcome o = {.kind = MT_DESTROY, .mem = MT_OBJECT_CONTEXT, .device = device, .status = status};
  if (!status && primary_alive(device)) o.flags = MT_FLAG_REFERENCE;
  if (!status && !o.flags) mt_context_remove(0, device);
  return o;
}

MT_HOOKED(cuDevicePrimaryCtxRetain, (uint64_t *out, int device)) {
  MT_HOOKED_REAL(cuDevicePrimaryCtxRetain);
  MT_HOOKED_OPEN(cuDevicePrimaryCtxRetain, driver, 0);
  int status = real(out, device);
  if (!call.self) return status;
  if (!status && !mt_context_add(*out, device, MT_CONTEXT_PRIMARY)) return mt_driver_skip(&call), status;
  mt_driver_close(
      &call,
      &(struct mt_outcome){
          .kind = MT_CREATE, .mem = MT_OBJECT_CONTEXT, .addr = status ? 0 : *out, .device = device, .status = status});
  return status;
}

#define MT_PRIMARY_RELEASED(symbol)                         \
  MT_HOOKED(symbol, (int device)) {                         \
    MT_HOOKED_REAL(symbol);                                 \
    MT_HOOKED_OPEN(symbol, driver, 1);                      \
    int status = real(device);                              \
    if (!call.self) return status;                          \
    struct mt_outcome o = primary_released(device, status); \
    mt_driver_close(&call, &o);                             \
    return status;                                          \
  }
MT_PRIMARY_RELEASED(cuDevicePrimaryCtxRelease)
MT_PRIMARY_RELEASED(cuDevicePrimaryCtxRelease_v2)
MT_PRIMARY_RELEASED(cuDevicePrimaryCtxReset)
MT_PRIMARY_RELEASED(cuDevicePrimaryCtxReset_v2)

/* The device that a runtime call of this thread means: of the current context, or where it has none, the one chosen in
 * the runtime that the caller uses. */
static int runtime_device(uintptr_t caller) {
  int device;
  if (!mt_query_current_device(&device)) return device;
  int (*query)(int *) = mt_original_find("cudaGetDevice", caller);
  return query && !query(&device) ? device : MT_HOST;
}

/* The runtime resets its device's primary context internally, not by the driver's exported functions. Afterwards there
 * is no context from which to query the device. */
#define MT_RUNTIME_RESET(symbol)                               \
  MT_HOOKED(symbol, (void)) {                                  \
    MT_HOOKED_REAL(symbol);                                    \
    MT_HOOKED_OPEN(symbol, runtime, 1);                        \
    int device = call.self ? runtime_device(caller) : MT_HOST; \
    int status = real();                                       \
    if (!call.self) return status;                             \
    struct mt_outcome o = primary_released(device, status);    \
    mt_runtime_close(&call, &o);                               \
    return status;                                             \
  }
MT_RUNTIME_RESET(cudaDeviceReset)
MT_RUNTIME_RESET(cudaThreadExit)

/* The new context is the thread's current one, so the driver returns its device; the argument may be of another version
 * of the call. */
static int created(struct mt_call *call, const uint64_t *out, int status) {
  int device = MT_HOST;
  if (!call->self) return status;
  if (!status && !mt_query_current_device(&device)) mt_context_add(*out, device, MT_CONTEXT_CREATED);
  mt_driver_close(
      call,
      &(struct mt_outcome){
          .kind = MT_CREATE, .mem = MT_OBJECT_CONTEXT, .addr = status ? 0 : *out, .device = device, .status = status});
  return status;
}

#define MT_CONTEXT_CREATED(symbol, params, args) \
  MT_HOOKED(symbol, params) {                    \
    MT_HOOKED_REAL(symbol);                      \
    MT_HOOKED_OPEN(symbol, driver, 0);           \
    return created(&call, out, real args);       \
  }
MT_CONTEXT_CREATED(cuCtxCreate, (uint64_t *out, unsigned flags, int device), (out, flags, device))
MT_CONTEXT_CREATED(cuCtxCreate_v2, (uint64_t *out, unsigned flags, int device), (out, flags, device))
MT_CONTEXT_CREATED(cuCtxCreate_v3, (uint64_t *out, void *affinities, int count, unsigned flags, int device),
                (out, affinities, count, flags, device))
MT_CONTEXT_CREATED(cuCtxCreate_v4, (uint64_t *out, void *how, unsigned flags, int device), (out, how, flags, device))

MT_HOOKED(cuGreenCtxCreate, (void **out, void *resources, int device, unsigned flags)) {
  MT_HOOKED_REAL(cuGreenCtxCreate);
  MT_HOOKED_OPEN(cuGreenCtxCreate, driver, 0);
  int status = real(out, resources, device, flags);
  if (!call.self) return status;
  if (!status) mt_context_add((uint64_t)*out, device, MT_CONTEXT_GREEN);
  mt_driver_close(&call, &(struct mt_outcome){.kind = MT_CREATE,
                                              .mem = MT_OBJECT_GREEN, .addr = status ? 0 : (uint64_t)*out,
                                              .device = device, .status = status});
  return status;
}

static struct known *entry_of(uint64_t context) {
  for (unsigned i = 0; i < MT_CONTEXTS; i++)
    if (__atomic_load_n(&known[i].context, __ATOMIC_ACQUIRE) == context) return &known[i];
  return NULL;
}

/* Nothing is recorded: the green context was, and this is the handle under which it becomes current. It must not be
 * mistaken for a primary context, as contexts are whose creation was not seen. */
MT_HOOKED(cuCtxFromGreenCtx, (uint64_t *out, void *green)) {
  MT_HOOKED_REAL(cuCtxFromGreenCtx);
  MT_HOOKED_OPEN(cuCtxFromGreenCtx, driver, 0);
  int status = real(out, green);
  struct known *entry = NULL;
  if (call.self && !status && mt_context_add(*out, MT_HOST, MT_CONTEXT_GREEN)) entry = entry_of(*out);
  if (entry) __atomic_store_n(&entry->green, (uint64_t)green, __ATOMIC_RELAXED);
  mt_driver_skip(&call);
  return status;
}

/* Removes a green context under both of its handles and returns its device. */
static int green_drop(uint64_t green) {
  int device = mt_context_device(green, MT_HOST);
  for (unsigned i = 0; i < MT_CONTEXTS; i++)
    if (__atomic_load_n(&known[i].context, __ATOMIC_ACQUIRE) &&
        __atomic_load_n(&known[i].green, __ATOMIC_RELAXED) == green)
      mt_context_remove(known[i].context, MT_HOST);
  mt_context_remove(green, MT_HOST);
  return device;
}

/* A green context holds the primary one of its device, and may be the last to do so: then that ends with it, at the
 * number that was drawn before. */
MT_HOOKED(cuGreenCtxDestroy, (void *green)) {
  MT_HOOKED_REAL(cuGreenCtxDestroy);
  if (!green) return real(green);
  MT_HOOKED_OPEN(cuGreenCtxDestroy, driver, 1);
  int status = real(green);
  if (!call.self) return status;
  int device = status ? MT_HOST : green_drop((uint64_t)green);
  struct mt_outcome o = {
      .kind = MT_DESTROY, .mem = MT_OBJECT_GREEN, .addr = (uint64_t)green, .device = MT_HOST, .status = status};
  if (device != MT_HOST && !primary_alive(device)) {
    mt_call_record_extra(call.self, call.id, call.caller, &o);
    o = primary_released(device, status);
  }
  mt_driver_close(&call, &o);
  return status;
}

/* A context attached more than once outlives cuCtxDetach, and is the thread's current one as before. */
static bool outlived(uint64_t context) {
  uint64_t now;
  int device;
  return !mt_query_current_context(&now) && now == context && !mt_query_current_device(&device);
}

static int destroyed(struct mt_call *call, uint64_t context, bool counted, int status) {
  if (!call->self) return status;
  uint8_t flags = counted && !status && outlived(context) ? MT_FLAG_REFERENCE : 0;
  if (!status && !flags) mt_context_remove(context, MT_HOST);
  mt_driver_close(call, &(struct mt_outcome){.kind = MT_DESTROY,
                                             .mem = MT_OBJECT_CONTEXT, .addr = context, .device = MT_HOST,
                                             .status = status, .flags = flags});
  return status;
}

#define MT_CONTEXT_ENDED(symbol, counted)                     \
  MT_HOOKED(symbol, (uint64_t context)) {                     \
    MT_HOOKED_REAL(symbol);                                   \
    MT_HOOKED_OPEN(symbol, driver, 1);                        \
    return destroyed(&call, context, counted, real(context)); \
  }
MT_CONTEXT_ENDED(cuCtxDestroy, false)
MT_CONTEXT_ENDED(cuCtxDestroy_v2, false)
MT_CONTEXT_ENDED(cuCtxDetach, true)
