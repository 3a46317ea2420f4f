/* The hook table: what routes need to know to hand out wrappers, and what wrappers written by hand have in common. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "attach/object.h"
#include "hooks/abi.h"
#include "hooks/call.h"
#include "hooks/original.h"

#define MT_NAME_SIZE 48

/* A row of hooks.def. Without pointers, which the loader would have to relocate in every process. */
struct mt_hook {
  char symbol[MT_NAME_SIZE];
  char base[MT_NAME_SIZE]; /* name that cuGetProcAddress knows, "" for runtime calls */
  int version;             /* first CUDA version of this ABI */
  int variant;             /* 2: per-thread default stream */
};

/* The numbers of hooks.def, and the places of its rows. */
#define MT_HOOK(number, level, symbol, ...) MT_ID_##symbol = number,
#define MT_CUSTOM(number, level, symbol, base, version, variant) MT_ID_##symbol = number,
#define MT_REPORT(number, symbol, mangled, shape)
enum mt_id {
#include "hooks.def"
};
#undef MT_HOOK
#undef MT_CUSTOM
#define MT_HOOK(number, level, symbol, ...) MT_ROW_##symbol,
#define MT_CUSTOM(number, level, symbol, base, version, variant) MT_ROW_##symbol,
enum mt_row {
#include "hooks.def"
  MT_ROWS
};
#undef MT_HOOK
#undef MT_CUSTOM
#undef MT_REPORT

extern const struct mt_hook mt_hooks[MT_ROWS];
extern struct mt_slot mt_slots[MT_ROWS];

/* The row's wrapper: the exported function. */
void *mt_hook_wrapper(enum mt_row row);

/* Where the library was loaded after the program: leads what is loaded, and what will be, to the wrappers. False, and
 * errno set, where the system forbids it. */
bool mt_route_rebind(void);

/* Where CUDA was used before that: leads addresses of driver functions that libraries have fetched to the wrappers.
 * Returns how many there were. */
unsigned mt_route_replace(void);

/* CUDA events that one library records and queries, by where its functions are. */
struct mt_event_watch {
  struct mt_range records;      /* code whose recorded events are reported */
  struct mt_range completes[2]; /* code whose completed events are reported; empty: none */
  void (*recorded)(uint64_t event, uint64_t stream);
  void (*completed)(uint64_t event);
};

/* Set once, when all of it is known. */
void mt_event_watch(const struct mt_event_watch *watch);

/* The head of every wrapper's definition. */
#define MT_HOOKED(symbol, params) \
  MT_EXPORT int symbol params;    \
  MT_EXPORT int symbol params

/* What every wrapper begins with: declares caller, and real, the original. */
#define MT_HOOKED_REAL(symbol)                                                          \
  uintptr_t caller = (uintptr_t)__builtin_return_address(0);                            \
  __typeof__(symbol) *real = mt_slot_find(&mt_slots[MT_ROW_##symbol], #symbol, caller); \
  if (MT_UNLIKELY(!real)) return CUDA_ERROR_UNKNOWN

/* Then, where something may be recorded, in a wrapper of a MT_CUSTOM row: declares call. */
#define MT_HOOKED_OPEN(symbol, level, releases) \
  struct mt_call call;                          \
  mt_##level##_open(&call, MT_ID_##symbol, __builtin_frame_address(0), releases)

/* The device that memory of a pool lies on. */
static inline int mt_pool_device(const struct mt_cuda_pool_props *props) {
  return props && props->location_type == 1 ? props->location_id : MT_HOST;
}
