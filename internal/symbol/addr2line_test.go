package symbol

import (
	"debug/elf"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reference is another tool's result for one function at an address.
type reference struct {
	function string // the linker's name; "" unknown
	file     string
	line     int
}

// addr2line runs binutils' addr2line on addresses.
func addr2line(t *testing.T, path string, addresses []uint64) map[uint64][]reference {
	t.Helper()
	var input strings.Builder
	for _, a := range addresses {
		fmt.Fprintf(&input, "%#x\n", a)
	}
	all := make(map[uint64][]reference)
	var at uint64
	lines := strings.Split(strings.TrimSpace(command(t, input.String(), "addr2line", "-a", "-i", "-f", "-e", path)),
		"\n")
	for i := 0; i < len(lines); {
		if strings.HasPrefix(lines[i], "0x") {
			at, _ = strconv.ParseUint(lines[i], 0, 64)
			i++
			continue
		}
		r := reference{function: lines[i]}
		if r.function == "??" {
			r.function = ""
		}
		place, _, _ := strings.Cut(lines[i+1], " (discriminator")
		if colon := strings.LastIndexByte(place, ':'); colon > 0 {
			r.file = filepath.Clean(place[:colon])
			r.line, _ = strconv.Atoi(place[colon+1:])
		}
		if strings.HasPrefix(place, "??") {
			r.file = ""
		}
		all[at] = append(all[at], r)
		i += 2
	}
	return all
}

// ownFrames is this package's result in the same form.
func ownFrames(r *Resolver, address uint64) []reference {
	var all []reference
	for _, f := range r.Native(address + 1) {
		file := f.File
		if file != "" {
			file = filepath.Clean(file)
		}
		all = append(all, reference{f.Function, file, f.Line})
	}
	return all
}

// llvmSymbolizer runs llvm-symbolizer on addresses.
func llvmSymbolizer(t *testing.T, path string, addresses []uint64) map[uint64][]reference {
	t.Helper()
	var input strings.Builder
	for _, a := range addresses {
		fmt.Fprintf(&input, "%#x\n", a)
	}
	all := make(map[uint64][]reference)
	blocks := strings.Split(strings.TrimSpace(command(t, input.String(), "llvm-symbolizer", "--inlines",
		"--functions=linkage", "--no-demangle", "-e", path)), "\n\n")
	if len(blocks) != len(addresses) {
		t.Fatalf("llvm-symbolizer answers %d times for %d addresses", len(blocks), len(addresses))
	}
	for n, block := range blocks {
		lines := strings.Split(block, "\n")
		for i := 0; i+1 < len(lines); i += 2 {
			r := reference{function: strings.TrimPrefix(lines[i], "??")}
			if parts := strings.Split(lines[i+1], ":"); len(parts) == 3 && parts[0] != "??" {
				r.file = filepath.Clean(parts[0])
				r.line, _ = strconv.Atoi(parts[1])
			}
			all[addresses[n]] = append(all[addresses[n]], r)
		}
	}
	return all
}

// TestAgainstOthers compares names, files, lines and inlined functions at addresses of programs with the results of
// binutils and LLVM. Where those two differ, either may be right; they differ where one of them does not support
// current compiler output.
func TestAgainstOthers(t *testing.T) {
	const both, llvmOnly = true, false
	for _, c := range []struct {
		name, compiler, source string
		binutils               bool // binutils 2.40 reads this kind well: it must agree nearly always
		flags                  []string
	}{
		{"gcc", "gcc", "inlined.c", both, []string{"-O2", "-g"}},
		{"gcc dwarf 4", "gcc", "inlined.c", both, []string{"-O2", "-gdwarf-4"}},
		{"gcc dwarf 5 64-bit offsets", "gcc", "inlined.c", llvmOnly, []string{"-O2", "-gdwarf-5", "-gdwarf64"}},
		{"gcc O3 sections", "gcc", "inlined.c", both, []string{"-O3", "-g", "-ffunction-sections",
			"-Wl,--gc-sections"}},
		{"gcc no-pie", "gcc", "inlined.c", both, []string{"-O2", "-g", "-no-pie"}},
		{"gcc shared", "gcc", "inlined.c", both, []string{"-O2", "-g", "-shared", "-fPIC"}},
		{"gcc static", "gcc", "inlined.c", both, []string{"-O2", "-g", "-static"}},
		{"gcc compressed", "gcc", "inlined.c", both, []string{"-O2", "-g", "-gz"}},
		{"gcc old compressed", "gcc", "inlined.c", llvmOnly, []string{"-O2", "-g", "-gz=zlib-gnu"}},
		{"gcc lto", "gcc", "inlined.c", llvmOnly, []string{"-O2", "-g", "-flto"}},
		{"clang", "clang", "inlined.c", llvmOnly, []string{"-O2", "-g"}},
		{"clang dwarf 4", "clang", "inlined.c", both, []string{"-O2", "-gdwarf-4"}},
		{"g++", "g++", "inlined.cc", both, []string{"-O2", "-g"}},
		{"g++ dwarf 4", "g++", "inlined.cc", both, []string{"-O2", "-gdwarf-4"}},
		{"g++ O0", "g++", "inlined.cc", both, []string{"-O0", "-g"}},
		{"clang++", "clang++", "inlined.cc", llvmOnly, []string{"-O2", "-g"}},
		{"clang++ dwarf 4", "clang++", "inlined.cc", both, []string{"-O2", "-gdwarf-4"}},
		{"rust", "rustc", "inlined.rs", llvmOnly, []string{"-O", "-g"}},
		{"rust v0", "rustc", "inlined.rs", llvmOnly, []string{"-O", "-g", "-Csymbol-mangling-version=v0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && strings.Contains(c.name, " ") {
				t.Skip("the compiler's usual output is compared")
			}
			path := compiled(t, c.compiler, c.source, c.flags...)
			compareWithOthers(t, path, c.binutils)
		})
	}
}

func compareWithOthers(t *testing.T, path string, binutils bool) {
	t.Helper()
	names := functionNames(t, path)
	addresses := spread(slices.Sorted(maps.Keys(names)), 2000)
	var gnu, llvm map[uint64][]reference
	if _, err := exec.LookPath("addr2line"); err == nil {
		gnu = addr2line(t, path, addresses)
	}
	if _, err := exec.LookPath("llvm-symbolizer"); err == nil {
		llvm = llvmSymbolizer(t, path, addresses)
	}
	if llvm == nil && (gnu == nil || !binutils) {
		t.Skip("neither addr2line nor llvm-symbolizer that could judge is here")
	}
	const base = 0x7f1200000000
	r := resolverOf(t, path, base, Options{Mangled: true})
	withGNU, withLLVM, alone, deepest := 0, 0, 0, 0
	for _, a := range addresses {
		got := ownFrames(r, a+base)
		deepest = max(deepest, len(got))
		asGNU, asLLVM := agrees(got, gnu[a], names[a]), agrees(got, llvm[a], names[a])
		if asGNU {
			withGNU++
		}
		if asLLVM {
			withLLVM++
		}
		if !asGNU && !asLLVM {
			if alone++; alone < 6 {
				t.Errorf("%#x:\n  ours      %v\n  addr2line %v\n  llvm      %v", a, got, gnu[a], llvm[a])
			}
		}
	}
	t.Logf("%d addresses, %d as addr2line, %d as llvm-symbolizer, %d as neither; at most %d functions at one",
		len(addresses), withGNU, withLLVM, alone, deepest)
	if deepest < 2 && !strings.Contains(path, "O0") {
		t.Errorf("nowhere is a function inlined")
	}
	if binutils && gnu != nil && withGNU < len(addresses)*9/10 {
		t.Errorf("only %d of %d as addr2line", withGNU, len(addresses))
	}
}

// agrees compares two results. For an address without a line only the function counts: the tools then differ in the
// file's name. A function that has several names may have any.
func agrees(got, want []reference, names []string) bool {
	if len(got) != len(want) {
		return false
	}
	for i, g := range got {
		w := want[i]
		same := g.function == w.function || i == len(got)-1 && slices.Contains(names, g.function) &&
			slices.Contains(names, w.function)
		if !same || g.line != w.line || g.line != 0 && g.file != w.file {
			return false
		}
	}
	return true
}

// functionNames returns every address inside of functions, with the names of the functions there.
func functionNames(t testing.TB, path string) map[uint64][]string {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[uint64][]string)
	for _, s := range symbols {
		if kind := elf.ST_TYPE(s.Info); (kind == elf.STT_FUNC || kind == elf.STT_GNU_IFUNC) &&
			s.Section != elf.SHN_UNDEF {
			for a := s.Value; a < s.Value+s.Size; a++ {
				names[a] = append(names[a], s.Name)
			}
		}
	}
	return names
}

// spread returns about limit of the addresses, from all over.
func spread(all []uint64, limit int) []uint64 {
	stride := len(all)/limit + 1
	var some []uint64
	for i := 0; i < len(all); i += stride {
		some = append(some, all[i])
	}
	return some
}
