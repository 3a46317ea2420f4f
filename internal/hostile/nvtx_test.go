package hostile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"memtrace/internal/guest"
	"memtrace/trace"
)

// The ages of NVTX that programs are built with: header-only, long ago and now, and the library that was there before.
var nvtxAges = map[string]struct{ pkg, version, header string }{
	"v3.0": {"nvidia-nvtx-cu12", "12.6.77", "nvtx3/nvToolsExt.h"},
	"v3.5": {"nvidia-nvtx", "13.5.25", "nvtx3/nvToolsExt.h"},
	"v2":   {"nvidia-nvtx-cu12", "12.6.77", "nvToolsExt.h"},
}

// oracle returns the folder of an unpacked vendor package, which is fetched once and kept in the cache.
func oracle(t *testing.T, pkg, version string) string {
	t.Helper()
	cache, err := guest.Cache()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "oracles", pkg+"-"+version)
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "fetch")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(work)
	const unpack = `import sys,zipfile,pathlib; w=pathlib.Path(sys.argv[1]); zipfile.ZipFile(next(w.glob("*.whl"))).extractall(w/"unpacked")`
	for _, command := range [][]string{
		{"python3", "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check", "-d", work, pkg +
			"==" + version},
		{"python3", "-c", unpack, work},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("no NVTX to test with: %v\n%s", err, out)
		}
	}
	if err := os.Rename(filepath.Join(work, "unpacked"), dir); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	return dir
}

// nvtxFlags are the compiler's flags for a version of NVTX; the library of v2 is found at run time by its path.
func nvtxFlags(t *testing.T, age string) []string {
	t.Helper()
	a := nvtxAges[age]
	root := oracle(t, a.pkg, a.version)
	header := find(t, root, a.header)
	flags := []string{fmt.Sprintf(`-DNVTX_HEADER="%s"`, a.header), "-isystem", strings.TrimSuffix(header, "/"+a.header)}
	if age == "v2" {
		library := find(t, root, "libnvToolsExt.so.1")
		flags = append(flags, "-Wl,--no-as-needed", library, "-Wl,-rpath,"+filepath.Dir(library), "-Wl,--as-needed")
	}
	return flags
}

func find(t *testing.T, root, name string) string {
	t.Helper()
	found := ""
	filepath.Walk(root, func(path string, _ os.FileInfo, _ error) error {
		if strings.HasSuffix(path, "/"+name) {
			found = path
		}
		return nil
	})
	if found == "" {
		t.Fatalf("%s has no %s", root, name)
	}
	return found
}

func nvtxGuest(t *testing.T, age string) string {
	return compile(t, "nvtx-"+age, []string{"testdata/guest/nvtx.c"}, append(withDriver(t), nvtxFlags(t, age)...)...)
}

func nvtxLibrary(t *testing.T, age string, flags ...string) string {
	name := "libnvtx-" + age + strings.Join(flags, "") + ".so"
	return compile(t, name, []string{"testdata/guest/nvtx_library.c"}, append(append(flags, "-shared", "-fPIC"),
		nvtxFlags(t, age)...)...)
}

// named is what a trace holds by name: tags of allocations by their size, marks in their order, and which other tool
// has NVTX.
type named struct {
	tags  map[uint64][]string
	marks []string
	nvtx  string
}

func names(t *testing.T, path string) named {
	t.Helper()
	r := read(t, path)
	n := named{tags: map[uint64][]string{}, nvtx: r.info["nvtx"]}
	for _, e := range r.events {
		switch e.Kind {
		case trace.EventAlloc:
			n.tags[e.Size] = append(n.tags[e.Size], r.tables.String(e.Tag))
		case trace.EventMark:
			n.marks = append(n.marks, r.tables.String(e.Name))
		}
	}
	return n
}

// onlyNames are those of a run's one trace.
func (r result) onlyNames(t *testing.T) named {
	t.Helper()
	r.only(t)
	return names(t, r.traces(t)[0])
}

var nvtxTags = map[uint64]string{
	1001: "before CUDA", 1002: "before CUDA.innen €", 1003: "before CUDA.innen €.com.example:registered early",
	1004: "before CUDA.innen €.com.example:registered early.com.example:später",
	1005: "com.example:registered early.com.example:später",
	1006: "", 1007: "wärme:breit.wärme:schmal", 1008: "main thread", 3001: "other thread", 3002: "",
}

func wantNvtxNames(t *testing.T, got named) {
	t.Helper()
	for size, want := range nvtxTags {
		times := []string{want}
		switch size {
		case 3001:
			times = []string{"other thread", "third thread"}
		case 3002:
			times = []string{"", ""}
		}
		if !slices.Equal(got.tags[size], times) {
			t.Errorf("the allocation of %d bytes has tags %q, want %q", size, got.tags[size], times)
		}
	}
	marks := []string{"plain mark", "märk", "com.example:märk", "across threads begin", "across threads end"}
	if !slices.Equal(got.marks, marks) {
		t.Errorf("marks %q, want %q", got.marks, marks)
	}
}

func TestNvtxNames(t *testing.T) {
	t.Parallel()
	for age := range nvtxAges {
		t.Run(age, func(t *testing.T) {
			got := run{program: nvtxGuest(t, age), args: []string{"names"}}.both(t, "").onlyNames(t)
			wantNvtxNames(t, got)
			if got.nvtx != "" {
				t.Errorf("NVTX is %q", got.nvtx)
			}
		})
	}
}

// Ranges answer what they answer where no tool is, and name all the same.
func TestNvtxAnswers(t *testing.T) {
	t.Parallel()
	for age := range nvtxAges {
		t.Run(age, func(t *testing.T) {
			r := run{program: nvtxGuest(t, age), args: []string{"answers"}}.both(t, "")
			once := "push -2 -2 -2 -2\npop -2 -2 -2 and -2 -2 -2\n" + strings.Repeat("start 0\n", 4)
			if want := once + once + "done\n"; r.stdout != want {
				t.Errorf("the program prints %q, want %q", r.stdout, want)
			}
			marks := []string{"a begin", "b begin", "e begin", "answers:e begin", "range end", "range end", "range end",
				"answers:e end"}
			if got := r.onlyNames(t); !slices.Equal(got.marks, marks) {
				t.Errorf("marks %q, want %q", got.marks, marks)
			}
		})
	}
}

// The environment is the same for every reader, and includes what the program sets itself.
func TestNvtxEnvironment(t *testing.T) {
	t.Parallel()
	for age := range nvtxAges {
		t.Run(age, func(t *testing.T) {
			env := []string{"NVTX_EMPTY=", "NVTX=short", "N=n", "NVTX_INJECTION64_PATHS=long", "MARK=m",
				"NVTX_INJECTION32_PATH=other"}
			got := run{program: nvtxGuest(t, age), args: []string{"environment"}, env: env, dir: t.TempDir(),
				shell: ":"}.both(t, "")
			if strings.Contains(got.stdout, "libmemtrace.so") ||
				!strings.Contains(got.stdout, "/set/by/the/program.so") {
				t.Errorf("the program sees\n%s", got.stdout)
			}
		})
	}
	for _, program := range [][]string{
		{"/usr/bin/env"}, {"/bin/sh", "-c", `echo "$NVTX_INJECTION64_PATH"; set`},
		{"bash", "-c", `echo "$NVTX_INJECTION64_PATH"; export -p`},
		{"python3", "-c",
			`import os; print(sorted(os.environ), os.getenv("NVTX_INJECTION64_PATH"), os.popen("env").read())`},
	} {
		path, err := exec.LookPath(program[0])
		if err != nil {
			continue // an image without it has nothing to compare
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			dir := t.TempDir()
			r := run{program: path, args: program[1:], dir: dir}
			want := r
			want.preload = []string{guestInterposer(t)}
			r.preload = append([]string{""}, want.preload...)
			plain, got := want.do(t), r.do(t)
			clean := func(text string) string { return strings.ReplaceAll(text, library(t)+":", "") }
			if plain.stdout != clean(got.stdout) || plain.exit != 0 || got.exit != 0 {
				t.Errorf("without the library\n%s\nwith it\n%s\n%s", plain.stdout, got.stdout, got.stderr)
			}
		})
	}
}

// guestInterposer is a preloaded library that does nothing here: with it the variable LD_PRELOAD is there in both runs.
func guestInterposer(t *testing.T) string {
	return compile(t, "libnext-interposer.so", []string{"testdata/guest/interposer.c"}, "-shared", "-fPIC")
}

// Another tool keeps NVTX, and the trace holds its name; a value that means "none" is obeyed.
func TestNvtxTaken(t *testing.T) {
	t.Parallel()
	tool := compile(t, "libtool.so", []string{"testdata/guest/nvtx_tool.c"}, "-shared", "-fPIC", "-DTOOL")
	for _, c := range []struct{ name, value, says, nvtx string }{
		{"tool", tool, "other tool: 4 pushes", "taken by libtool.so"},
		{"nobody", "./.", "", "taken by ."},
		{"missing", "/no/such/tool.so", "", "taken by tool.so"},
	} {
		for age := range nvtxAges {
			t.Run(c.name+"/"+age, func(t *testing.T) {
				got := run{program: nvtxGuest(t, age), args: []string{"names"},
					env: []string{"NVTX_INJECTION64_PATH=" + c.value}}.both(t, "")
				if !strings.Contains(got.stderr, c.says) {
					t.Errorf("the tool says %q, want %q", got.stderr, c.says)
				}
				n := got.onlyNames(t)
				if n.nvtx != c.nvtx || n.tags[1002][0] != "" || len(n.marks) != 0 {
					t.Errorf("NVTX is %q with tags %v and marks %q", n.nvtx, n.tags, n.marks)
				}
			})
		}
	}
	t.Run("driver's tool", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "nvidia/nvtx"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "nvidia/nvtx/nvtx-cuda.yaml"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		got := run{program: nvtxGuest(t, "v3.5"), args: []string{"names"},
			env: []string{"XDG_RUNTIME_DIR=" + dir}}.both(t, "")
		if n := got.onlyNames(t); n.nvtx != "taken by the CUDA driver" || n.tags[1002][0] != "" {
			t.Errorf("NVTX is %q with tags %v", n.nvtx, n.tags)
		}
	})
	t.Run("ourselves", func(t *testing.T) {
		got := run{program: nvtxGuest(t, "v3.0"), args: []string{"names"},
			env: []string{"NVTX_INJECTION64_PATH=" + library(t)}, preload: []string{""}}.do(t)
		n := got.onlyNames(t)
		wantNvtxNames(t, n)
		if n.nvtx != "" {
			t.Errorf("NVTX is %q", n.nvtx)
		}
	})
}

// The library is the one that is loaded, by whatever name, and also when that name leads nowhere any more.
func TestNvtxLibraryNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, preload, mode string
		args                []string
	}{
		{name: "relative", preload: "./copy.so", mode: "deleted"},
		{name: "symbolic link", preload: "./link.so", mode: "names"},
		{name: "deleted file", preload: "./copy.so", mode: "deleted", args: []string{"copy.so"}},
		{name: "deleted link", preload: "DIR/link.so", mode: "deleted", args: []string{"link.so", "copy.so"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			data, err := os.ReadFile(library(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "copy.so"), data, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("copy.so", filepath.Join(dir, "link.so")); err != nil {
				t.Fatal(err)
			}
			preload := strings.Replace(c.preload, "DIR", dir, 1)
			got := run{program: nvtxGuest(t, "v3.0"), args: append([]string{c.mode}, c.args...),
				preload: []string{preload}, dir: dir}.do(t)
			if got.exit != 0 {
				t.Fatalf("exit %d\n%s%s", got.exit, got.stdout, got.stderr)
			}
			wantNvtxNames(t, got.onlyNames(t))
		})
	}
}

// Libraries with NVTX of their own, loaded and unloaded again and again; one attaches in its constructor.
func TestNvtxLibraries(t *testing.T) {
	t.Parallel()
	args := []string{"libraries", nvtxLibrary(t, "v3.0"), nvtxLibrary(t, "v3.5", "-DEARLY"), nvtxLibrary(t, "v2")}
	got := run{program: nvtxGuest(t, "v3.0"), args: args}.both(t, "").onlyNames(t)
	for i := range uint64(6) {
		if want := fmt.Sprintf("program.library %d", i); !slices.Equal(got.tags[4000+i], []string{want}) {
			t.Errorf("%q, want %q", got.tags[4000+i], want)
		}
	}
	if !slices.Equal(got.tags[4999], []string{"program"}) ||
		!slices.Equal(got.marks, []string{"constructor", "constructor"}) {
		t.Errorf("tags %q, marks %q", got.tags[4999], got.marks)
	}
}

// A library attaches in its constructor, which runs before ours does.
func TestNvtxBeforeConstructor(t *testing.T) {
	t.Parallel()
	early := nvtxLibrary(t, "v3.0", "-DEARLY")
	source := `#include "cuda.h"
void enter(int n);
int leave(void);
int main(void) {
  void *context;
  uint64_t p;
  enter(7);
  return cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuMemAlloc_v2(&p, 5000) || leave() == 99;
}
`
	program := compile(t, "nvtx-linked", []string{source}, append(withDriver(t), early)...)
	for env, want := range map[string]string{"MEMTRACE_NVTX=1": "library 7", "MEMTRACE_NVTX=0": ""} {
		if got := (run{program: program, env: []string{env}}).both(t, "").onlyNames(t); !slices.Equal(got.tags[5000],
			[]string{want}) {
			t.Errorf("%s: tags %q, want %q", env, got.tags[5000], want)
		}
	}
}

// A getenv after memtrace's sees all lookups that memtrace's does not answer, one before it sees all.
func TestSecondGetenv(t *testing.T) {
	t.Parallel()
	other := compile(t, "libgetenv.so", []string{"testdata/guest/nvtx_tool.c"}, "-shared", "-fPIC")
	for _, preload := range [][]string{{"", other}, {other, ""}} {
		got := run{program: nvtxGuest(t, "v3.0"), args: []string{"names"}, preload: preload}.both(t, "")
		wantNvtxNames(t, got.onlyNames(t))
		got = run{program: nvtxGuest(t, "v3.0"), args: []string{"environment"}, preload: preload,
			env: []string{"NVTX_EMPTY="}, dir: t.TempDir()}.do(t)
		if !strings.Contains(got.stdout, "NVTX_EMPTY: \n") {
			t.Errorf("%s", got.stdout)
		}
	}
	asks :=
		"#include <stdio.h>\n#include <stdlib.h>\nint main(void) { return !getenv(\"NVTX_EMPTY\") + !getenv(\"NVTX_EMPTY\"); }\n"
	program := compile(t, "asks", []string{asks})
	for _, preload := range [][]string{{"", other}, {other, ""}} {
		got := run{program: program, preload: preload, env: []string{"NVTX_EMPTY="}}.both(t, "")
		if !strings.Contains(got.stderr, "other getenv: 2 calls") || got.exit != 0 {
			t.Errorf("exit %d, %q", got.exit, got.stderr)
		}
	}
}

// A variable that is read while the loader still relocates libraries, ours not yet among them.
func TestGetenvBeforeRelocation(t *testing.T) {
	t.Parallel()
	source :=
		"#include <stdio.h>\nint variant(void);\nint main(void) { printf(\"variant %d\\n\", variant()); return 0; }\n"
	chooser := compile(t, "libchooser.so", []string{"testdata/guest/nvtx_ifunc.c"}, "-shared", "-fPIC", "-Wl,-z,now")
	program := compile(t, "chooses", []string{source}, chooser)
	for _, bind := range []string{"LD_BIND_NOW=", "LD_BIND_NOW=1"} {
		got := run{program: program, env: []string{"VARIANT=2", bind}}.both(t, "")
		if !strings.HasPrefix(got.stdout, "variant ") || got.exit != 0 {
			t.Errorf("exit %d, %q", got.exit, got.stdout)
		}
	}
}
