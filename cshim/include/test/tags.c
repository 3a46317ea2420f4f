/* SPDX-License-Identifier: Apache-2.0 */
/* Uses every part of memtrace.h from C. Prints "1" or "0": whether somebody records. Also compiles as C++. */
#include "memtrace.h"

#include <stdio.h>

static int evaluated;

static const char *name_once(const char *name) {
  evaluated++;
  return name;
}

static void scope(int leave_early) {
  MEMTRACE_TAG_SCOPE("scope");
  {
    MEMTRACE_TAG_SCOPE("inner");
    if (leave_early)
      return;
  }
  MEMTRACE_MARK("in scope");
}

static void pool(void) {
  static char memory[64];
  uint64_t arena = MEMTRACE_POOL_CREATE(name_once("arena"), 1);
  MEMTRACE_POOL_ALLOC(arena, memory, sizeof memory);
  MEMTRACE_POOL_FREE(arena, memory);
  MEMTRACE_POOL_DESTROY(arena);
}

int main(void) {
  pool();
  MEMTRACE_TAG_PUSH("outer");
  MEMTRACE_TAG_PUSH(name_once("b.1"));
  MEMTRACE_STEP(18446744073709551615u);
  MEMTRACE_EPOCH(3);
  MEMTRACE_TAG_POP();
  scope(0);
  scope(1);
  if (MEMTRACE_ACTIVE())
    MEMTRACE_TAG_PUSH("");
  else
    MEMTRACE_TAG_PUSH(NULL);
  MEMTRACE_TAG_POP();
  MEMTRACE_TAG_POP();
  MEMTRACE_TAG_POP();
  printf("%d\n", MEMTRACE_ACTIVE());
  return evaluated == 2 ? 0 : 1;
}
