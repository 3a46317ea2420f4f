package hostile

import (
	"testing"

	"memtrace/trace"
)

// A child that a recorded program forks has nothing of the Go runtime's memory: no runtime lives there, and each fork
// would copy what the parent's has. The child records all the same, and does not unmap address space that may be the
// program's by now when it limits itself.
func TestChildrenWithoutRuntime(t *testing.T) {
	t.Parallel()
	program := compile(t, "lighter", []string{`#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cuda.h"
static long space(void) {
  char line[256];
  long kib = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status)) sscanf(line, "VmSize: %ld", &kib);
  fclose(status);
  return kib >> 10;
}
static void allocate(void) {
  uint64_t p;
  for (int i = 0; i < 100; i++) cuMemAlloc_v2(&p, 1000);
}
int main(void) {
  void *context;
  if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0)) return 1;
  allocate();
  for (int i = 0; i < 1000 && space() < 1024; i++) usleep(10000); /* until the runtime is up */
  long own = space();
  if (!fork()) {
    printf("%s\n", own - space() >= 64 ? "lighter" : "as heavy");
    char *room = mmap(0, 600ul << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    allocate();
    struct rlimit limit = {3ul << 30, 3ul << 30};
    setrlimit(RLIMIT_AS, &limit);
    if (mprotect(room, 600ul << 20, PROT_READ)) puts("what the child had reserved is gone");
    fflush(stdout);
    _exit(room[599ul << 20]);
  }
  int status;
  wait(&status);
  return status;
}
`}, withDriver(t)...)
	got := run{program: program, preload: []string{""}}.do(t)
	if got.exit != 0 || got.stdout != "lighter\n" {
		t.Errorf("exit %d\n%s%s", got.exit, got.stdout, got.stderr)
	}
	whole := 0
	for _, path := range got.traces(t) {
		r := read(t, path)
		if r.lost == 0 && r.count(func(e trace.Event) bool { return e.Size == 1000 }) == 100 {
			whole++
		}
	}
	if whole != 1 { // the driver refuses the child's allocations; TestForkedChildren has one that does not
		t.Errorf("%d whole recordings of the parent", whole)
	}
}
