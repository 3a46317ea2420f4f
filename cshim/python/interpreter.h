/* The Python interpreter of this process: found once, then only read. Internal to the Python walker. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"
#include "elf/symbol.h"
#include "python/pylayout.h"

/* Ordered: stacks are read from MT_PY_CHECKED on. */
enum mt_pystate {
  MT_PY_NONE,    /* not found yet */
  MT_PY_OFF,     /* no stacks from it, for good */
  MT_PY_BINDING,  /* a thread is binding its symbols */
  MT_PY_CHECKED, /* reads go through process_vm_readv, and their results are checked */
  MT_PY_TRUSTED, /* enough walks passed the checks */
};

struct mt_interpreter {
  /* what every walk reads */
  struct mt_pylayout layout;
  uint32_t state;               /* enum mt_pystate */
  void *(*thread_state)(void);  /* the calling thread's own, NULL without one; needs no lock */
  int (*finalizing)(void);
  /* what checks read */
  uintptr_t code_type, text_type, bytes_type;
  struct mt_loaded object;
  struct mt_loaded program; /* the executable, which may hold copies of a library's variables */
  uint32_t version;         /* 0x030b07f0 */
  char version_text[32];
  const char *why;          /* it is off */
};

extern struct mt_interpreter mt_interpreter;

static inline uint32_t mt_interpreter_state(void) { return __atomic_load_n(&mt_interpreter.state, __ATOMIC_ACQUIRE); }

/* Disables Python stacks for good, with one warning; why is a literal. */
void mt_interpreter_disable(const char *why);

/* Address of a function or a variable that the interpreter exports, or 0. */
uintptr_t mt_interpreter_symbol(const char *name);
uintptr_t mt_interpreter_variable(const char *name);

/* Records the self-test's result: "passed: 12 frames". */
void mt_interpreter_set_test_result(const char *text);
