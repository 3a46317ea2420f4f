package symbol

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"memtrace/trace"
)

func resolverWith(module trace.Module, o Options) *Resolver {
	var tables trace.Tables
	tables.AddModule(module)
	return New(&tables, trace.Info{}, o)
}

// address returns where a function of a file begins.
func address(t *testing.T, path, function string) uint64 {
	t.Helper()
	names := functionNames(t, path)
	for a, here := range names {
		if slices.Contains(here, function) && !slices.Contains(names[a-1], function) {
			return a
		}
	}
	t.Fatalf("%s has no function %s", path, function)
	return 0
}

// An address without a symbol is named by its module and the start in the unwind table, never by a neighbour.
func TestNameless(t *testing.T) {
	whole := compiled(t, "gcc", "inlined.c", "-O2", "-shared", "-fPIC")
	names := functionNames(t, whole)
	hidden, exported := address(t, whole, "rarely"), address(t, whole, "api_call")
	path := copyOf(t, whole)
	command(t, "", "strip", path) // .dynsym stays
	r := resolverOf(t, path, 0, Options{Sources: []string{}})
	nameless := 0
	for a, here := range names {
		f := r.Native(a + 1)[0]
		dynamic := slices.ContainsFunc(here, func(name string) bool {
			return slices.Contains([]string{"api_call", "table_lookup", "main"}, name)
		})
		switch {
		case dynamic && !slices.Contains(here, f.Function):
			t.Errorf("%#x is %v, called %q", a, here, f.Function)
		case !dynamic && f.Function != "":
			t.Errorf("%#x is %v, called %q", a, here, f.Function)
		case !dynamic:
			nameless++
		}
	}
	if nameless == 0 {
		t.Error("no function lost its name")
	}
	if got, want := r.Native(hidden + 6)[0].Name(), fmt.Sprintf("inlined.out+%#x", hidden); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if f := r.Native(exported + 1)[0]; f.Function != "api_call" || f.Start != exported || f.Module != path ||
		f.Address != exported {
		t.Errorf("%+v", f)
	}
	// A return address is the end of the call: the code after the last call of a function may be the next function.
	if f := r.Native(exported)[0]; f.Function == "api_call" {
		t.Errorf("the address before is taken for the function itself: %+v", f)
	}
	noProblems(t, r)
}

func TestAliases(t *testing.T) {
	source := filepath.Join(t.TempDir(), "alias.s")
	text := `
	.text
	.globl longer_global, name_global, versioned
	.weak a_weak
	.type longer_global,@function
	.type name_global,@function
	.type a_weak,@function
	.type a_local,@function
	.type versioned_1,@function
longer_global:
name_global:
a_weak:
a_local:
	nop
	ret
	.size longer_global, .-longer_global
	.size name_global, .-name_global
	.size a_weak, .-a_weak
	.size a_local, .-a_local
versioned_1:
	nop
	ret
	.size versioned_1, .-versioned_1
	.symver versioned_1, versioned@@V1
	.p2align 6
	.globl no_size
no_size:
	.cfi_startproc
	nop
	nop
	nop
	ret
	.cfi_endproc
	.p2align 6
	nop
`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "versions")
	if err := os.WriteFile(script, []byte("V1 { global: *; };\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "alias.so")
	command(t, "", "gcc", "-shared", "-nostdlib", "-o", path, source, "-Wl,--version-script="+script)
	r := resolverOf(t, path, 0, Options{Sources: []string{}})
	im, err := openImage(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.close()
	text0 := im.elf.Section(".text").Addr
	for offset, want := range map[uint64]string{0: "name_global", 1: "name_global", 2: "versioned", 64: "no_size",
		67: "no_size", 68: "", 128: ""} {
		if f := r.Native(text0 + offset + 1)[0]; f.Function != want &&
			!(want == "versioned" && f.Function == "versioned_1") {
			t.Errorf("+%d: %q, want %q", offset, f.Function, want)
		}
	}
}

// Files that are not those of the run are reported and never used.
func TestOtherFiles(t *testing.T) {
	program := compiled(t, "gcc", "inlined.c", "-O2", "-g")
	nameless := compiled(t, "gcc", "inlined.c", "-O2", "-g", "-Wl,--build-id=none")
	at := address(t, program, "table_lookup") + 1
	folder := t.TempDir()
	pipe := filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(folder, "text")
	if err := os.WriteFile(text, []byte("no object file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(m *trace.Module)
		want   string // of the problem; "" none: the file is used
	}{
		{"the same", func(*trace.Module) {}, ""},
		{"only the build-id counts", func(m *trace.Module) { m.ModTime++; m.Size++ }, ""},
		{"another build-id", func(m *trace.Module) { m.BuildID = strings.Repeat("ab", 20) },
			"is not the file of the run (the run's had build-id abab"},
		{"without a build-id", func(m *trace.Module) { m.Path = nameless }, "this one has none"},
		{"gone", func(m *trace.Module) { m.Path = filepath.Join(folder, "gone.so") }, "gone.so is not here"},
		{"a folder", func(m *trace.Module) { m.Path = folder }, "not a regular file"},
		{"a pipe", func(m *trace.Module) { m.Path = pipe }, "not a regular file"},
		{"a text", func(m *trace.Module) { m.Path = text }, "cannot be used"},
		{"the kernel's own", func(m *trace.Module) { m.Path = "linux-vdso.so.1" }, "quiet"},
		{"a shortened path", func(m *trace.Module) { m.Path = "site-packages/lib.so" },
			"site-packages/lib.so is not here"},
	} {
		m := moduleOf(t, program, 0)
		c.change(&m)
		checkUse(t, c.name, m, at, c.want)
	}
	for name, change := range map[string]func(*trace.Module){
		"":                    func(*trace.Module) {},
		"had ":                func(m *trace.Module) { m.Size++ },
		"written since":       func(m *trace.Module) { m.ModTime++ },
		"does not say enough": func(m *trace.Module) { m.Size, m.ModTime = 0, 0 },
	} {
		m := moduleOf(t, nameless, 0)
		change(&m)
		checkUse(t, "no build-id: "+name, m, address(t, nameless, "table_lookup")+1, name)
	}
}

// What the program opened by a path from its folder is found there.
func TestRelativePath(t *testing.T) {
	program := compiled(t, "gcc", "inlined.c", "-O2", "-g")
	pc := address(t, program, "table_lookup") + 2
	var tables trace.Tables
	m := moduleOf(t, program, 0)
	m.Path = "./" + filepath.Base(program)
	tables.AddModule(m)
	r := New(&tables, trace.Info{"process.cwd": filepath.Dir(program)}, Options{Sources: []string{}})
	frames := r.Native(pc)
	if f := frames[len(frames)-1]; f.Function != "table_lookup" || f.Module != m.Path {
		t.Errorf("%+v", f)
	}
	noProblems(t, r)
}

func checkUse(t *testing.T, name string, m trace.Module, at uint64, problem string) {
	t.Helper()
	r := resolverWith(m, Options{Sources: []string{}})
	f := r.Native(at + 1)[0]
	problems := strings.Join(r.Problems(), "\n")
	used := f.Function != "" || f.File != ""
	switch {
	case used != (problem == ""):
		t.Errorf("%s: %+v, problems %q", name, f, problems)
	case problem == "" || problem == "quiet":
		noProblems(t, r)
	case !strings.Contains(problems, problem) || !strings.Contains(problems, "; "):
		t.Errorf("%s: problems %q, want %q and what to do", name, problems, problem)
	}
	if !used && f.Name() != fmt.Sprintf("%s+%#x", filepath.Base(m.Path), at) {
		t.Errorf("%s: called %q", name, f.Name())
	}
}

func TestManyProblemsAreOne(t *testing.T) {
	var tables trace.Tables
	var pcs []uint64
	for i := range uint64(30) {
		tables.AddModule(trace.Module{ID: trace.ModuleID(i + 1), Start: i << 20, End: (i + 1) << 20, Base: i << 20,
			Path: fmt.Sprintf("/nowhere/lib%02d.so", i), BuildID: "00"})
		pcs = append(pcs, i<<20+5)
	}
	r := New(&tables, nil, Options{})
	r.Warm(pcs)
	if p := r.Problems(); len(p) != 1 ||
		!strings.HasPrefix(p[0], "30 object files of the run are not here, /nowhere/lib00.so among them; ") {
		t.Errorf("problems %q", p)
	}
}

func TestInterpreterAndCompiledCode(t *testing.T) {
	program := compiled(t, "gcc", "inlined.c", "-O2", "-g")
	start := address(t, program, "table_lookup")
	const base = 0x7f0000000000
	mapFile := filepath.Join(t.TempDir(), "perf.map")
	if err := os.WriteFile(mapFile,
		[]byte("100 10 _ZN4toys4spinEi\n200 20 py::spam:/a/b.py\n108 4 later\nnonsense\n300 zz x\n"), 0o600); err !=
		nil {
		t.Fatal(err)
	}
	var tables trace.Tables
	tables.AddModule(moduleOf(t, program, base))
	info := trace.Info{"python.eval": fmt.Sprintf("%x-%x", base+start, base+start+0x10)}
	r := New(&tables, info, Options{PerfMap: mapFile})
	for pc, want := range map[uint64]Frame{
		base + start + 2:    {Kind: Interpreter, Function: "table_lookup"},
		base + start + 0x12: {Kind: Native, Function: "table_lookup"},
		0x20a:               {Kind: Interpreter, Function: "py::spam:/a/b.py"},
		0x10a:               {Kind: JIT, Function: "later"},
		0x105:               {Kind: JIT, Function: ""}, // its memory was used again
		0x10f:               {Kind: JIT, Function: ""},
		0:                   {Kind: JIT, Function: ""},
	} {
		frames := r.Native(pc)
		if f := frames[len(frames)-1]; f.Kind != want.Kind || f.Function != want.Function {
			t.Errorf("%#x: %+v", pc, f)
		}
	}
	if name := r.Native(0x500)[0].Name(); name != "[jit] 0x4ff" {
		t.Errorf("called %q", name)
	}
}

// One at a time, all at once, and with what was found before: always the same.
func TestWarm(t *testing.T) {
	var tables trace.Tables
	var pcs []uint64
	for i, flags := range [][]string{{"-O2"}, {"-O3", "-g"}, {"-O2", "-g", "-static"}} {
		path := compiled(t, "gcc", "inlined.c", flags...)
		base := uint64(i+1) << 40
		m := moduleOf(t, path, base)
		m.ID, m.End = trace.ModuleID(i+1), base+1<<39
		tables.AddModule(m)
		for _, a := range spread(slices.Sorted(maps.Keys(functionNames(t, path))), 300) {
			pcs = append(pcs, base+a+1)
		}
	}
	tables.AddStack(trace.Stack{ID: 1, Frames: pcs})
	cache := t.TempDir()
	one := New(&tables, nil, Options{})
	one.warmed = true // else the first would look all up
	for _, how := range []struct {
		name string
		r    *Resolver
	}{
		{"all at once", New(&tables, nil, Options{})},
		{"into a cache", New(&tables, nil, Options{Cache: cache})},
		{"from a cache", New(&tables, nil, Options{Cache: cache})},
		{"closed", New(&tables, nil, Options{})},
	} {
		if how.name == "closed" {
			how.r.Warm(pcs[:100])
			how.r.Close()
		} else {
			how.r.Warm(pcs)
		}
		for _, pc := range pcs {
			if got, want := how.r.Native(pc), one.Native(pc); !slices.Equal(got, want) {
				t.Fatalf("%s: %#x: %+v, want %+v", how.name, pc, got, want)
			}
		}
		noProblems(t, how.r)
	}
}

func TestPythonFrame(t *testing.T) {
	var tables trace.Tables
	// One entry of the form of CPython 3.11: no columns, line +2, 4 instructions of 2 bytes.
	tables.AddCode(trace.Code{ID: 1, Name: "f", QualName: "C.f", File: "/a/b.py", FirstLine: 10,
		Table: trace.LinesLocations, Lines: []byte{0x80 | 13<<3 | 3, 4}})
	tables.AddCode(trace.Code{ID: 2, Name: "g", File: "/a/c.py", FirstLine: 7})
	r := New(&tables, nil, Options{NoFiles: true})
	for _, c := range []struct {
		frame trace.PyFrame
		want  Frame
	}{
		{trace.PyFrame{Code: 1, Offset: 4, Entry: true, Self: 9},
			Frame{Kind: Python, Function: "C.f", FullFunction: "C.f", File: "/a/b.py", Line: 12, Entry: true, Self: 9}},
		{trace.PyFrame{Code: 1, Offset: 400}, Frame{Kind: Python, Function: "C.f", FullFunction: "C.f", File: "/a/b.py",
			Line: 10}},
		{trace.PyFrame{Code: 2}, Frame{Kind: Python, Function: "g", FullFunction: "g", File: "/a/c.py", Line: 7}},
		{trace.PyFrame{Code: 3}, Frame{Kind: Python}},
	} {
		if got := r.Python(c.frame); got != c.want {
			t.Errorf("%+v:\n  %+v\n  want %+v", c.frame, got, c.want)
		}
	}
	if name := r.Python(trace.PyFrame{Code: 3}).Name(); name != "?" {
		t.Errorf("called %q", name)
	}
}
