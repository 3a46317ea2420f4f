/* A library that uses NVTX by itself: its tables are its own, and it attaches when it is loaded or at its first range.
 */
#include NVTX_HEADER

#include <stdio.h>

void enter(int n);
int leave(void);

#ifdef EARLY
__attribute__((constructor)) static void on_load(void) { nvtxMarkA("constructor"); }
#endif

void enter(int n) {
  char name[32];
  snprintf(name, sizeof name, "library %d", n);
  nvtxRangePushA(name);
}

int leave(void) { return nvtxRangePop(); }
