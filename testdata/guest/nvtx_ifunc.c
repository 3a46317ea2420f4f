/* A library that chooses a function's variant by a variable while the loader relocates it: the preloaded library in
 * front of it is not relocated yet. */
#include <stdlib.h>

int variant(void);

static int one(void) { return 1; }
static int two(void) { return 2; }
static int none(void) { return 0; }

__attribute__((used)) static int (*choose(void))(void) {
  const char *value = getenv("VARIANT");
  if (!value || getenv("NVTX_INJECTION64_PATH")) return none;
  return value[0] == '2' ? two : one;
}

static int chosen(void) __attribute__((ifunc("choose")));

int variant(void) { return chosen(); }
