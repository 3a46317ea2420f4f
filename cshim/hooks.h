/* The hook table: what routes need to know to hand out wrappers, and what wrappers written by hand have in common. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "call.h"
#include "real.h"

enum mt_level { MT_LEVEL_DRIVER = 1, MT_LEVEL_RUNTIME = 2 };

struct mt_hook {
  const char *symbol;
  const char *base; /* name that cuGetProcAddress knows, "" for runtime calls */
  int version;      /* first CUDA version of this ABI */
  int variant;      /* 2: per-thread default stream */
  void *wrapper;
  struct mt_slot *slot;
};

extern const struct mt_hook mt_hooks[];
extern const unsigned mt_hook_count;

/* The numbers of hooks.def. */
#define MT_HOOK(number, level, symbol, ...) MT_ID_##symbol = number,
#define MT_CUSTOM(number, level, symbol, base, version, variant) MT_ID_##symbol = number,
#define MT_REPORT(number, symbol, mangled, shape)
enum mt_id {
#include "hooks.def"
};
#undef MT_HOOK
#undef MT_CUSTOM
#undef MT_REPORT

/* A wrapper of a MT_CUSTOM row: the head of its definition, and what it begins with. The latter declares caller, real and call. */
#define MT_HOOKED(symbol, params)  \
  struct mt_slot mt_slot_##symbol; \
  MT_EXPORT int symbol params;     \
  MT_EXPORT int symbol params
#define MT_HOOKED_OPEN(symbol, types, level, releases)                      \
  uintptr_t caller = (uintptr_t)__builtin_return_address(0);                \
  int(*real) types = mt_slot_find(&mt_slot_##symbol, #symbol, caller);      \
  if (MT_UNLIKELY(!real)) return MT_CUDA_UNKNOWN;                           \
  struct mt_call call;                                                      \
  mt_##level##_open(&call, MT_ID_##symbol, caller, releases)
