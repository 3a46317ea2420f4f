package symbol

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"memtrace/trace"
)

// maxDamageMemory bounds the memory for reading a damaged program of some ten KiB, bytes.
const maxDamageMemory = 48 << 20

// TestDamagedObjects changes, cuts and overwrites object files everywhere: nothing may panic or take much memory, and
// every address still gets a frame.
func TestDamagedObjects(t *testing.T) {
	for _, c := range []struct {
		name, compiler, source string
		flags                  []string
	}{
		{"dwarf 4", "gcc", "inlined.c", []string{"-O2", "-gdwarf-4"}},
		{"dwarf 5", "gcc", "inlined.c", []string{"-O2", "-gdwarf-5"}},
		{"compressed", "gcc", "inlined.c", []string{"-O2", "-g", "-gz"}},
		{"clang", "clang", "inlined.c", []string{"-O2", "-g", "-shared", "-fPIC"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := compiled(t, c.compiler, c.source, append(c.flags, "-Wl,--build-id=none")...)
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			addresses := spread(slices.Sorted(maps.Keys(functionNames(t, path))), 40)
			random := rand.New(rand.NewSource(7))
			for range 400 {
				tryDamaged(t, path, damage(random, whole, path), addresses)
			}
		})
	}
}

// damage returns a copy of a file with something wrong with it.
func damage(random *rand.Rand, whole []byte, path string) []byte {
	data := slices.Clone(whole)
	section := func() (at, size int) { // most damage is to parsed parts, not to code
		im, err := openImage(path)
		if err != nil {
			return 0, len(data)
		}
		defer im.close()
		names := []string{".debug_info", ".debug_abbrev", ".debug_line", ".debug_rnglists", ".debug_ranges",
			".debug_str", ".symtab", ".dynsym", ".strtab", ".eh_frame", ".eh_frame_hdr"}
		if s := im.section(names[random.Intn(len(names))]); s != nil {
			return int(s.Offset), int(s.FileSize)
		}
		return 0, 64
	}
	switch random.Intn(6) {
	case 0:
		return data[:random.Intn(len(data))]
	case 1: // headers
		for range 1 + random.Intn(4) {
			data[random.Intn(64)] = byte(random.Intn(256))
		}
	case 2: // the table of sections, at the end
		for range 1 + random.Intn(8) {
			data[len(data)-1-random.Intn(min(len(data), 37*64))] = byte(random.Intn(256))
		}
	case 3:
		at, size := section()
		for range 1 + random.Intn(16) {
			data[at+random.Intn(size)] = byte(random.Intn(256))
		}
	case 4:
		at, size := section()
		from := random.Intn(size)
		for i := from; i < min(size, from+1+random.Intn(64)); i++ {
			data[at+i] = 0xff
		}
	case 5:
		at, size := section()
		from := random.Intn(size)
		clear(data[at+from : at+min(size, from+1+random.Intn(64))])
	}
	return data
}

func tryDamaged(t *testing.T, original string, data []byte, addresses []uint64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "damaged")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, careful := range []bool{false, true} {
		module := trace.Module{ID: 1, End: 1 << 40, Path: path, Size: uint64(st.Size()),
			ModTime: st.ModTime().UnixNano()}
		r := resolverWith(module, Options{Sources: []string{}, careful: careful})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, a := range addresses {
			if len(r.Native(a+1)) == 0 {
				t.Fatalf("%#x has no frame", a)
			}
		}
		r.Problems()
		r.Close()
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > maxDamageMemory {
			keep := filepath.Join(os.TempDir(), "memtrace-damaged")
			t.Errorf("%d bytes of memory for a file of %d; it is kept as %s", took, len(data), keep)
			if err := os.WriteFile(keep, data, 0o600); err != nil && !errors.Is(err, fs.ErrPermission) {
				t.Fatal(err)
			}
		}
	}
}

// A file that is cut while its pages are mapped costs names, not the process.
func TestCutWhileMapped(t *testing.T) {
	path := compiled(t, "rustc", "inlined.rs", "-O", "-g") // its debug information is large enough to be mapped
	addresses := spread(slices.Sorted(maps.Keys(functionNames(t, path))), 50)
	r := resolverOf(t, path, 0, Options{Sources: []string{}})
	r.lookUp(pcsOf(addresses[:1]))
	ob := r.object(r.tables.Modules()[0])
	if ob.debug == nil || len(ob.debug.maps.parts) == 0 {
		t.Fatal("nothing is mapped")
	}
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	r.lookUp(pcsOf(addresses))
	if len(r.Problems()) == 0 {
		t.Error("no problem is told")
	}
}

// checkLineHeader keeps the numbers of a table's header from becoming allocations.
func TestHostileLineTable(t *testing.T) {
	header := []byte{40, 0, 0, 0, 5, 0, 8, 0, 30, 0, 0, 0, 1, 1, 1, 0xfb, 14, 1, 1, 1, 0x0f, 0xff, 0xff, 0xff, 0xff,
		0x7f, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	if err := checkLineHeader(header, binary.LittleEndian); err == nil {
		t.Error("4 billion folders are believed")
	}
}
