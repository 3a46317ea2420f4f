package hostile

import (
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/spool"
	"memtrace/trace"
)

func routes(t *testing.T) string {
	nullGPU(t)
	return compile(t, "routes", []string{"testdata/guest/routes.c"})
}

// runtimeUser builds a library around one copy of the runtime: "11", "12", "13" linked, "static12" built in.
func runtimeUser(t *testing.T, version string) string {
	t.Helper()
	lib, source := nullGPU(t), []string{"testdata/guest/user.c"}
	file := map[string]string{"11": "libcudart.so.11.0", "12": "libcudart.so.12", "13": "libcudart.so.13",
		"static12": "static12/libcudart_static.a"}[version]
	return compile(t, "libuser"+version+".so", source, "-shared", "-fPIC", filepath.Join(lib, file))
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	nullGPU(t)
	next := compile(t, "libnext.so", []string{"testdata/guest/next.c"},
		append([]string{"-shared", "-fPIC", "-Wl,--no-as-needed"}, withDriver(t)...)...)
	for _, c := range []struct {
		mode  string
		args  []string
		sizes []uint64
	}{
		{mode: "dlsym", sizes: []uint64{11001}},
		{mode: "default", sizes: []uint64{11002}},
		{mode: "default-local"},
		{mode: "proc", sizes: []uint64{11003, 11004, 11005, 11006, 11007}},
		{mode: "next", args: []string{next}, sizes: []uint64{11008}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			got := run{program: routes(t), args: append([]string{c.mode}, c.args...)}.both(t, "")
			if len(c.sizes) == 0 {
				return
			}
			r := got.only(t)
			if c.mode == "next" && r.allocations(c.sizes[0]) == 0 {
				t.Skip("the loader gave the library the driver behind it, which is what it asked for")
			}
			for _, size := range c.sizes {
				if r.allocations(size) != 1 {
					t.Errorf("the allocation of %d bytes was seen %d times", size, r.allocations(size))
				}
			}
			for _, e := range r.events {
				perThread := strings.HasSuffix(e.API.String(), "_ptsz")
				if e.Kind == trace.EventAlloc && perThread != (e.Size == 11005) {
					t.Errorf("%d bytes came from %s", e.Size, e.API)
				}
			}
		})
	}
}

func TestPresence(t *testing.T) {
	t.Parallel()
	got := run{program: routes(t), args: []string{"presence"}}.both(t, "")
	if !strings.Contains(got.stdout, "cudaMalloc: none") {
		t.Errorf("a program without CUDA was told\n%s", got.stdout)
	}
}

func TestRuntimes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ mode, first, second string }{
		{"two", "11", "13"}, {"two", "13", "11"}, {"two", "static12", "13"}, {"two", "12", "static12"},
		{"unload", "11", "13"}, {"unload", "static12", "11"},
	} {
		t.Run(c.mode+" "+c.first+" "+c.second, func(t *testing.T) {
			r := run{program: routes(t), args: []string{c.mode, runtimeUser(t, c.first),
				runtimeUser(t, c.second)}}.both(t, "").only(t)
			want := map[uint64]int{31000: 1, 31001: 1}
			if c.mode == "unload" {
				want = map[uint64]int{}
				for i := range uint64(20) {
					want[21000+i] = 1
				}
			}
			for size, n := range want {
				if got := r.allocations(size); got != n {
					t.Errorf("%d allocations of %d bytes, want %d", got, size, n)
				}
			}
			if c.first == "static12" || c.second == "static12" {
				return // a runtime that is built in shows its driver calls only
			}
			for _, e := range r.events {
				// samples come when they come
				if (e.Kind == trace.EventAlloc || e.Kind == trace.EventFree) && e.Runtime == 0 {
					t.Errorf("event %d of %s has no runtime call", e.Seq, e.API)
					break
				}
			}
		})
	}
	t.Run("deepbind", func(t *testing.T) {
		got := run{program: routes(t), args: []string{"deepbind", runtimeUser(t, "11"), runtimeUser(t, "13")}}.both(t,
			"past this library")
		if !strings.Contains(got.stderr, "RTLD_DEEPBIND") {
			t.Errorf("nobody is told that nothing was seen:\n%s", got.stderr)
		}
		r := read(t, got.traces(t)[0])
		if len(r.events) != 0 || r.info["blind"] == "" || r.ended != spool.EndedClean {
			t.Errorf("%d events; the trace says %q, and that the run ended as %q", len(r.events), r.info["blind"],
				r.ended)
		}
	})
}

func TestSecondInterposer(t *testing.T) {
	t.Parallel()
	other := compile(t, "libother.so", []string{"testdata/guest/interposer.c"}, "-shared", "-fPIC")
	linked := compile(t, "linked",
		[]string{"testdata/guest/user.c",
			"int use_runtime(unsigned long);\nint main(void) { return use_runtime(5000) + use_runtime(5000); }\n"},
		filepath.Join(nullGPU(t), "libcudart.so.12"))
	users := run{program: routes(t), args: []string{"two", runtimeUser(t, "12"), runtimeUser(t, "13")}}
	for _, c := range []struct {
		name    string
		run     run
		preload []string
		says    string
	}{
		{"before, called by the program", run{program: linked}, []string{other, ""}, "other interposer: 2 calls"},
		{"after, called by the program", run{program: linked}, []string{"", other}, "other interposer: 2 calls"},
		{"after, called by libraries", users, []string{"", other}, "other interposer: 4 calls"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.run.preload = c.preload
			got := c.run.both(t, "")
			if !strings.Contains(got.stderr, c.says) {
				t.Errorf("the other interposer says\n%s", got.stderr)
			}
			if c.run.program == linked && got.only(t).allocations(5000) != 2 {
				t.Errorf("the allocations were not seen twice")
			}
		})
	}
}

// TestGroup: a library that is linked with none for CUDA's functions gets them from those that were loaded along with
// it, and no other library does.
func TestGroup(t *testing.T) {
	t.Parallel()
	const visible = `__attribute__((visibility("default"))) `
	runtime := filepath.Join(nullGPU(t), "libcudart.so.12")
	inner := compile(t, "libgroup.so", []string{"testdata/guest/group.c"}, "-shared", "-fPIC")
	root := compile(t, "libgrouproot.so", []string{"#include <stddef.h>\nint use_group(size_t);\n" + visible +
		"int use_root(size_t size);\nint use_root(size_t size) { return use_group(size); }\n"},
		"-shared", "-fPIC", "-Wl,--no-as-needed", inner, runtime)
	stranger := compile(t, "libstranger.so", []string{"#define _GNU_SOURCE\n#include <dlfcn.h>\n" + visible +
		"int look(void);\nint look(void) { return dlsym(RTLD_DEFAULT, \"cudaMalloc\") != 0; }\n"},
		"-shared", "-fPIC")
	got := run{program: compile(t, "group_host", []string{"testdata/guest/group_host.c"}),
		args: []string{root, stranger}}.both(t, "")
	if want :=
		"the library: done, and sees more\nthe library: done, and sees more\nthe stranger sees nothing, the program nothing\n"; got.stdout != want {
		t.Errorf("the program says\n%s", got.stdout)
	}
	if n := got.only(t).allocations(7001); n != 2 {
		t.Errorf("%d allocations were seen, want 2", n)
	}
}

// Two threads that needed one of the driver's answers for the first time at once: the second one took the function that
// the first was still looking up for missing. Its variable then had no size, or its allocation no device and no owner.
func TestConcurrentFirstLookups(t *testing.T) {
	t.Parallel()
	program := compile(t, "question", []string{`#include <pthread.h>
#include <stdlib.h>
#include "cuda.h"
enum { THREADS = 16 };
int cuModuleLoadData(void **module, const void *image);
int cuModuleGetGlobal_v2(uint64_t *out, size_t *size, void *module, const char *name);
static void *context, *module[THREADS];
static pthread_barrier_t all;
static void *ask(void *number) {
  uint64_t p;
  if (cuCtxSetCurrent(context)) abort();
  pthread_barrier_wait(&all);
  if (cuModuleGetGlobal_v2(&p, NULL, module[(long)number], "variable")) abort();
  return NULL;
}
int main(void) {
  pthread_t t[THREADS];
  if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0)) return 1;
  pthread_barrier_init(&all, NULL, THREADS);
  for (int i = 0; i < THREADS; i++)
    if (cuModuleLoadData(&module[i], "image")) return 2;
  for (long i = 0; i < THREADS; i++)
    if (pthread_create(&t[i], NULL, ask, (void *)i)) return 3;
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  return 0;
}
`}, withDriver(t)...)
	for range 10 {
		got := run{program: program, preload: []string{""}}.do(t)
		if n := got.only(t).allocations(64 << 10); n != 16 {
			t.Fatalf("%d of 16 variables have their size", n)
		}
	}
}
