/* The hook table: what routes need to know to hand out wrappers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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

/* Keeps the real cuCtxGetDevice that a route came across. */
void mt_learn_ctx_device(void *real);

/* Whether one is kept: a runtime asks for four hundred functions in a row, and this one need be fetched along only once. */
bool mt_knows_ctx_device(void);

/* Drops it if its library is gone. */
void mt_forget_ctx_device(void);
