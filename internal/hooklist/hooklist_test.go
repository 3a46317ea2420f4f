package hooklist

import (
	"debug/elf"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"memtrace/internal/guest"
)

var update = flag.Bool("update", false, "write docs/hooks.md anew")

func load(t *testing.T) (hooks, declared []Function, rules Rules) {
	t.Helper()
	root := guest.Root()
	hooks, err := Hooks(filepath.Join(root, "cshim/hooks.def"))
	if err != nil {
		t.Fatal(err)
	}
	if declared, err = Declared(filepath.Join(root, "testdata/headers/cuda.txt")); err != nil {
		t.Fatal(err)
	}
	if rules, err = ReadRules(filepath.Join(root, "testdata/headers/rules.txt")); err != nil {
		t.Fatal(err)
	}
	return hooks, declared, rules
}

func symbols(list []Function) map[string]Function {
	m := make(map[string]Function, len(list))
	for _, f := range list {
		m[f.Symbol] = f
	}
	return m
}

// Every function that the headers declare is hooked, left out for a reason, or has nothing to do with memory; and every
// hook is one of CUDA's functions, with the headers' version and variant.
func TestHeaders(t *testing.T) {
	hooks, declared, rules := load(t)
	hooked, known := symbols(hooks), symbols(declared)
	if len(known) < 1000 {
		t.Fatalf("the table has %d functions", len(known))
	}
	for _, f := range declared {
		_, is := hooked[f.Symbol]
		switch rule := rules.Find(f.Symbol); {
		case rule == nil:
			t.Errorf("%s (CUDA %s): does it change memory? Say so in testdata/headers/rules.txt", f.Symbol,
				strings.Join(f.In, " "))
		case rule.Class == Hook && !is:
			t.Errorf("%s (CUDA %s) changes memory and is not hooked", f.Symbol, strings.Join(f.In, " "))
		case rule.Class != Hook && is:
			t.Errorf("%s is hooked, though the rules say %q", f.Symbol, rule.Reason)
		}
	}
	for _, h := range hooks {
		f, ok := known[h.Symbol]
		switch {
		case !ok:
			t.Errorf("%s is hooked and no header declares it", h.Symbol)
		case h.Symbol == "cuCtxCreate_v4": // drivers differ: see hooks.def
			if f.Version != 12050 || h.Version != 13000 {
				t.Errorf("cuCtxCreate_v4: the headers say %d, hooks.def %d", f.Version, h.Version)
			}
		case f.Level != h.Level || f.Base != h.Base || f.Version != h.Version || f.Variant != h.Variant:
			t.Errorf("%s: the headers say %q %d %d, hooks.def %q %d %d", h.Symbol, f.Base, f.Version, f.Variant, h.Base,
				h.Version, h.Variant)
		}
	}
	for _, rule := range rules {
		if !rule.Used && rule.Reason != "registration" && !strings.HasPrefix(rule.Reason, "Resources of graphics") {
			t.Errorf("no function matches the rule: %s", rule.Reason)
		}
	}
}

// exported lists the functions that a library exports.
func exported(t *testing.T, path string) (names []string) {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatalf("%v; run `make nullcuda` first", err)
	}
	defer file.Close()
	list, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			names = append(names, s.Name)
		}
	}
	return names
}

// The null CUDA has every hooked function, so that each can be tested, and nothing that the rules do not know.
func TestExports(t *testing.T) {
	hooks, _, rules := load(t)
	lib := filepath.Join(guest.Root(), "build/nullcuda/lib")
	libraries := map[string][]string{Driver: {"libcuda.so.1"}, Runtime: {"libcudart.so.11.0", "libcudart.so.12",
		"libcudart.so.13"}}
	for level, files := range libraries {
		all := map[string]bool{}
		for _, file := range files {
			for _, name := range exported(t, filepath.Join(lib, file)) {
				all[name] = true
				if rules.Find(name) == nil {
					t.Errorf("%s exports %s: does it change memory? Say so in testdata/headers/rules.txt", file, name)
				}
			}
		}
		if len(all) < 300 {
			t.Errorf("%s: %d functions are exported", level, len(all))
		}
		for _, h := range hooks {
			if h.Level == level && !all[h.Symbol] {
				t.Errorf("the null CUDA lacks %s", h.Symbol)
			}
		}
	}
}

// A rule must not be so wide that it hides what is new: these names have none.
func TestUnknown(t *testing.T) {
	_, _, rules := load(t)
	for _, name := range []string{"cuMemAllocElsewhere", "cuMemTeleport", "cuArrayCreateOther", "cuCtxCreateBetter",
		"cuMulticastGrow", "cudaFreeLater", "cuPoolMake", "cudaNewThing", "cuIpcOpenPool"} {
		if rule := rules.Find(name); rule != nil {
			t.Errorf("%s is taken for %s: %s", name, rule.Class, rule.Reason)
		}
	}
}

func TestPage(t *testing.T) {
	hooks, declared, rules := load(t)
	path := filepath.Join(guest.Root(), "docs/hooks.md")
	want := Page(hooks, declared, rules)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || !slices.Equal(strings.Split(string(have), "\n"), strings.Split(want, "\n")) {
		t.Errorf("docs/hooks.md is stale; run `go generate ./internal/hooklist` (%v)", err)
	}
}
