package hostile

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What cuGetProcAddress returns for every base name, version and flag is the wrapper of what the driver would have
// returned.
func TestCoverVersions(t *testing.T) {
	t.Parallel()
	program := compile(t, "cover-versions", []string{"testdata/guest/cover_versions.c"})
	for _, driver := range []string{"11040", "12040", "12090", "13000", "13990"} {
		t.Run(driver, func(t *testing.T) {
			got := run{program: program, env: []string{"NULLCUDA_DRIVER_VERSION=" + driver}}.both(t, "")
			if n := strings.Count(got.stdout, "\n"); n < 1000 || strings.Contains(got.stdout, "nameless") {
				t.Errorf("%d lines, or functions without a name", n)
			}
			if r := got.only(t); driver == "13990" && r.allocations(4242) != 1 {
				t.Errorf("a version without a new ABI went past the hooks")
			}
		})
	}
}

// A function of a version unknown to the hooks is passed through, and the trace records that.
func TestCoverFuture(t *testing.T) {
	t.Parallel()
	program := compile(t, "cover-versions", []string{"testdata/guest/cover_versions.c"})
	future := compile(t, "libfuture.so", []string{"testdata/guest/cover_future.c"}, "-shared", "-fPIC")
	got := run{program: program, preload: []string{"", future}, env: []string{"NULLCUDA_DRIVER_VERSION=13050"}}.both(t,
		"")
	if !strings.HasSuffix(got.stdout, "future: 0 0, labelled label: 0\n") {
		t.Errorf("the new function was not called:\n%s", got.stdout[max(0, len(got.stdout)-200):])
	}
	if !strings.Contains(traceInfo(t, got), "unhooked.cuMemAlloc") {
		t.Errorf("the trace does not say what was not hooked:\n%s", traceInfo(t, got))
	}
}

// traceInfo returns the output of `memtrace info` for the only trace.
func traceInfo(t *testing.T, got result) string {
	t.Helper()
	paths := got.traces(t)
	if len(paths) != 1 {
		t.Fatalf("%d traces", len(paths))
	}
	text, err := exec.Command(command(t), "info", paths[0]).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return string(text)
}

// Another interposer before or after the library, which looks functions up with RTLD_NEXT or in the libraries that
// define them. It is called as often as without the library, the program does the same, and every block is recorded
// once.
func TestCoverBetween(t *testing.T) {
	t.Parallel()
	const source = "testdata/guest/cover_between.c"
	others := map[string]string{
		"next":   compile(t, "libbetween-next.so", []string{source}, "-shared", "-fPIC"),
		"handle": compile(t, "libbetween-handle.so", []string{source}, "-shared", "-fPIC", "-DBY_HANDLE"),
	}
	programs := []struct{ level, route, path string }{
		{"driver", "linked",
			coverProgram(t, "cover-linked", append([]string{"-DCOVER_LINKED_DRIVER", "-Wl,--no-as-needed"},
				withDriver(t)...)...)},
		{"driver", "dlsym", coverProgram(t, "cover")},
		{"driver", "by-version", coverProgram(t, "cover")},
		{"runtime", "linked", coverProgram(t, "cover-linked12", "-DCOVER_LINKED_RUNTIME", runtimePath(t, "12"))},
		{"runtime", "dlsym", coverProgram(t, "cover")},
	}
	for how, other := range others {
		for order, preload := range map[string][]string{"before": {other, ""}, "after": {"", other}} {
			for _, p := range programs {
				t.Run(filepath.Join(how, order, p.level, p.route), func(t *testing.T) {
					r := coverRun(t, p.level, p.route, "12")
					r.program, r.preload = p.path, preload
					got := r.both(t, "")
					if got.exit != 0 {
						t.Fatalf("exit %d\n%s%s", got.exit, got.stdout, got.stderr)
					}
					checkCover(t, got)
				})
			}
		}
	}
}

// A tile was the last to keep a handle's memory alive, and the number of its unmapping was drawn after the driver had
// done it: another thread could be given the same handle in between, under a lower number. The new memory then ended
// with the old tile. Here an interposer after the library requests the new memory at just that moment.
func TestCoverTileEnds(t *testing.T) {
	t.Parallel()
	behind := compile(t, "libbehind.so", []string{`#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
uint64_t released_before;
int made_behind; /* until the handle came back; 0 it did not */
int cuMemMapArrayAsync(void *tiles, unsigned count, void *stream) {
  static const int property[16] = {1, 0, 1, 0};
  int (*real)(void *, unsigned, void *) = dlsym(RTLD_NEXT, "cuMemMapArrayAsync");
  int (*create)(uint64_t *, uint64_t, const void *, unsigned long long) = dlsym(RTLD_DEFAULT, "cuMemCreate");
  int status = real(tiles, count, stream);
  static int calls;
  uint64_t made = 0;
  if (++calls != 2) return status;
  while (made != released_before && made_behind < 100 && !create(&made, 2 << 20, property, 0)) made_behind++;
  if (made != released_before) made_behind = 0;
  return status;
}
`}, "-shared", "-fPIC")
	program := compile(t, "tile-ends", []string{`#include <dlfcn.h>
#include <stdio.h>
#include "hooks/abi.h"
#include "cuda.h"
int cuArray3DCreate_v2(void **out, const struct mt_cuda_array3d *shape);
int cuMemMapArrayAsync(struct mt_cuda_tiles *tiles, unsigned count, void *stream);
int main(void) {
  static const int property[16] = {1, 0, 1, 0};
  const struct mt_cuda_array3d shape = {512, 300, 0, 0x20, 1, 0x40};
  void *context, *array;
  uint64_t handle;
  if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuArray3DCreate_v2(&array, &shape) || cuMemCreate(&handle, 2 << 20, property, 0)) return 1;
  struct mt_cuda_tiles tile = {.resource = (uint64_t)array, .at.level = {.width = 256, .height = 256, .depth = 1}, .operation = 1, .handle = handle, .device_mask = 1};
  if (cuMemMapArrayAsync(&tile, 1, NULL) || cuMemRelease(handle)) return 2;
  uint64_t other[20]; /* so many of a size that the allocator does not keep the next one for itself */
  for (int i = 0; i < 20; i++)
    if (cuMemCreate(&other[i], 2 << 20, property, 0)) return 4;
  for (int i = 0; i < 20; i += 2)
    if (cuMemRelease(other[i])) return 5;
  tile.operation = 2;
  *(uint64_t *)dlsym(RTLD_DEFAULT, "released_before") = handle;
  if (cuMemMapArrayAsync(&tile, 1, NULL)) return 3;
  printf("%d made\n", *(int *)dlsym(RTLD_DEFAULT, "made_behind"));
  return 0;
}
`}, withDriver(t)...)
	got := run{program: program, preload: []string{"", behind}}.do(t)
	var made int64
	if _, err := fmt.Sscanf(got.stdout, "%d made\n", &made); err != nil || made == 0 {
		t.Fatalf("the driver did not use the handle again: %v, exit %d, %s%s", err, got.exit, got.stdout, got.stderr)
	}
	replay := replayText(t, got.traces(t)[0])
	if live := replay.live[ledgerPlace{"driver", 0}]; len(replay.problems) > 0 || live != (10+made)<<21 {
		t.Errorf("%d bytes live, want those of %d handles; %v", live, 10+made, replay.problems)
	}
}
