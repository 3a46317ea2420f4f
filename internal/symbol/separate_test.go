package symbol

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"memtrace/internal/guest"
)

// results returns a resolver's results for addresses of a file loaded at 0, as text. Modules are left out: copies have
// other paths.
func results(r *Resolver, addresses []uint64) []string {
	r.Warm(pcsOf(addresses))
	all := make([]string, len(addresses))
	for i, a := range addresses {
		for _, f := range r.Native(a + 1) {
			all[i] += fmt.Sprintf("%s %s %s:%d %#x %v; ", f.Function, f.FullFunction, f.File, f.Line,
				f.Start, f.Inlined)
		}
	}
	return all
}

func pcsOf(addresses []uint64) []uint64 {
	pcs := make([]uint64, len(addresses))
	for i, a := range addresses {
		pcs[i] = a + 1
	}
	return pcs
}

// sameResults compares the results of two resolvers.
func sameResults(t *testing.T, what string, got, want []string) {
	t.Helper()
	different := 0
	for i := range want {
		if got[i] != want[i] {
			if different++; different < 4 {
				t.Errorf("%s: %s\n  want %s", what, got[i], want[i])
			}
		}
	}
	if different > 0 {
		t.Errorf("%s: %d of %d differ", what, different, len(want))
	}
}

// strippedProgram builds a program and moves its debug information to a separate file. want is the result for the
// unstripped program.
func strippedProgram(t *testing.T, flags ...string) (path, debugFile string, addresses []uint64, want []string) {
	t.Helper()
	whole := compiled(t, "gcc", "inlined.c", append([]string{"-O2", "-g"}, flags...)...)
	addresses = spread(slices.Sorted(maps.Keys(functionNames(t, whole))), 1500)
	want = results(resolverOf(t, whole, 0, Options{}), addresses)
	path = copyOf(t, whole)
	debugFile = filepath.Join(filepath.Dir(path), "separate.debug")
	command(t, "", "objcopy", "--only-keep-debug", path, debugFile)
	command(t, "", "objcopy", "--strip-all", path)
	return path, debugFile, addresses, want
}

func noProblems(t *testing.T, r *Resolver) {
	t.Helper()
	if p := r.Problems(); len(p) != 0 {
		t.Errorf("problems: %q", p)
	}
}

func TestDebugFileByBuildID(t *testing.T) {
	path, debugFile, addresses, want := strippedProgram(t)
	id := moduleOf(t, path, 0).BuildID
	folder := t.TempDir()
	place := idPath(folder, id)
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(debugFile, place); err != nil {
		t.Fatal(err)
	}
	r := resolverOf(t, path, 0, Options{Sources: []string{t.TempDir(), folder}})
	sameResults(t, "by build-id", results(r, addresses), want)
	noProblems(t, r)

	// The object file is gone: its debug file still has everything except the starts of nameless functions.
	module := moduleOf(t, path, 0)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r = resolverWith(module, Options{Sources: []string{folder}})
	sameResults(t, "without the object file", results(r, addresses), want)
	if p := r.Problems(); len(p) != 1 || !strings.Contains(p[0], path+" is not here") {
		t.Errorf("problems: %q", p)
	}
}

func TestDebugFileByLink(t *testing.T) {
	for _, c := range []struct {
		name, flag string
		place      func(program string) string
	}{
		{"beside, by build-id", "-Wl,--build-id=sha1", func(p string) string {
			return filepath.Join(filepath.Dir(p), "separate.debug")
		}},
		{"beside, by checksum", "-Wl,--build-id=none", func(p string) string {
			return filepath.Join(filepath.Dir(p), "separate.debug")
		}},
		{".debug", "-Wl,--build-id=none", func(p string) string {
			return filepath.Join(filepath.Dir(p), ".debug", "separate.debug")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, debugFile, addresses, want := strippedProgram(t, c.flag)
			command(t, "", "objcopy", "--add-gnu-debuglink="+debugFile, path)
			place := c.place(path)
			if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(debugFile, place); err != nil {
				t.Fatal(err)
			}
			r := resolverOf(t, path, 0, Options{Sources: []string{}})
			sameResults(t, "by link", results(r, addresses), want)
			noProblems(t, r)

			// Another build's file under the name is reported and not used.
			other := compiled(t, "gcc", "inlined.c", "-O1", "-g", c.flag)
			data, err := os.ReadFile(other)
			if err == nil {
				err = os.WriteFile(place, data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			r = resolverOf(t, path, 0, Options{Sources: []string{}})
			for _, text := range results(r, addresses) {
				if strings.Contains(text, "inlined.c") || strings.Contains(text, "table_lookup") {
					t.Fatalf("a name from another build's file: %s", text)
				}
			}
			if p := r.Problems(); len(p) != 1 || !strings.Contains(p[0], "another build") {
				t.Errorf("problems: %q", p)
			}
		})
	}
}

func TestDebugFileUnderFolder(t *testing.T) {
	path, debugFile, addresses, want := strippedProgram(t, "-Wl,--build-id=none")
	command(t, "", "objcopy", "--add-gnu-debuglink="+debugFile, path)
	folder := t.TempDir()
	place := filepath.Join(folder, filepath.Dir(path), "separate.debug")
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(debugFile, place); err != nil {
		t.Fatal(err)
	}
	r := resolverOf(t, path, 0, Options{Sources: []string{folder}})
	sameResults(t, "under a folder", results(r, addresses), want)
	noProblems(t, r)
}

// Information common to several debug files may be in a separate file.
func TestSharedDebugFile(t *testing.T) {
	guest.Tool(t, "dwz", "--version")
	first := compiled(t, "g++", "inlined.cc", "-O2", "-g", "-gdwarf-4")
	second := compiled(t, "g++", "inlined.cc", "-O3", "-g", "-gdwarf-4")
	addresses := spread(slices.Sorted(maps.Keys(functionNames(t, first))), 1500)
	want := results(resolverOf(t, first, 0, Options{}), addresses)
	folder := t.TempDir()
	a, b := filepath.Join(folder, "a.out"), filepath.Join(folder, "b.out")
	for from, to := range map[string]string{first: a, second: b} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	command(t, "", "dwz", "-m", filepath.Join(folder, "common.debug"), a, b)
	r := resolverOf(t, a, 0, Options{Sources: []string{}})
	sameResults(t, "with a shared file", results(r, addresses), want)
	noProblems(t, r)

	if err := os.Remove(filepath.Join(folder, "common.debug")); err != nil {
		t.Fatal(err)
	}
	r = resolverOf(t, a, 0, Options{Sources: []string{}})
	results(r, addresses)
	if p := r.Problems(); len(p) != 1 || !strings.Contains(p[0], "common.debug") {
		t.Errorf("problems: %q", p)
	}
}

// Lines are found without the files that hold the rest; the missing files are reported.
func TestSplitDebug(t *testing.T) {
	path := compiled(t, "gcc", "inlined.c", "-O2", "-g", "-gsplit-dwarf", "-dumpdir", builds.folder+"/")
	addresses := slices.Sorted(maps.Keys(functionNames(t, path)))
	r := resolverOf(t, path, 0, Options{})
	lines := 0
	for _, a := range addresses {
		if f := r.Native(a + 1); strings.HasSuffix(f[0].File, "inlined.c") && f[0].Line > 0 && f[0].Function != "" {
			lines++
		}
	}
	if lines < len(addresses)/2 {
		t.Errorf("only %d of %d addresses have a line", lines, len(addresses))
	}
	if p := r.Problems(); len(p) != 1 || !strings.Contains(p[0], "gsplit-dwarf") {
		t.Errorf("problems: %q", p)
	}
}
