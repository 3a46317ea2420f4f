package symbol

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"memtrace/trace"
)

// problemsOf returns the problems reported for a file at a path from a trace.
func problemsOf(t *testing.T, m trace.Module, sources ...string) []string {
	t.Helper()
	m.Start, m.End, m.Base = 0x1000, 0x2000, 0x1000
	var tables trace.Tables
	tables.AddModule(m)
	r := New(&tables, trace.Info{}, Options{Sources: append([]string{}, sources...)})
	defer r.Close()
	r.Native(0x1100)
	return r.Problems()
}

// A trace may name any file. One that named /etc/shadow had "bad magic number '[114 111 111 116]'" in its report: the
// first bytes of a file that the trace's author may not read. No content of a file is reported before it is identified
// as the run's: all contents of one size give the same text.
func TestOtherFilesAreNotDisclosed(t *testing.T) {
	program := compiled(t, "gcc", "inlined.c", "-O2", "-Wl,--build-id=0x0123456789abcdef")
	whole, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(change func(file []byte)) []byte {
		file := bytes.Clone(whole)
		change(file)
		return file
	}
	contents := map[string][]byte{
		"a secret":         append([]byte("root:$6$secret:19000:0:99999:7:::\n"), make([]byte, len(whole)-34)...),
		"zeros":            make([]byte, len(whole)),
		"32 bits":          changed(func(f []byte) { f[elf.EI_CLASS] = byte(elf.ELFCLASS32) }),
		"an unknown class": changed(func(f []byte) { f[elf.EI_CLASS] = 77 }),
		"another end":      changed(func(f []byte) { f[elf.EI_DATA] = byte(elf.ELFDATA2MSB) }),
		"another version":  changed(func(f []byte) { f[elf.EI_VERSION] = 77 }),
		"a wild section":   changed(func(f []byte) { binary.LittleEndian.PutUint64(f[0x28:], 1<<60+4711) }),
		"a wild name":      changed(func(f []byte) { binary.LittleEndian.PutUint16(f[0x3e:], 0x4711) }),
	}
	path := filepath.Join(t.TempDir(), "file")
	want := ""
	for name, content := range contents {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(problemsOf(t, trace.Module{ID: 1, Path: path, BuildID: strings.Repeat("ab", 20)}), "\n")
		if want == "" {
			want = got
		}
		if got != want || got == "" {
			t.Errorf("%s: %q, of another content %q", name, got, want)
		}
	}
	// The build-id of an object of another build is not disclosed, also not of a debug file.
	id := strings.Repeat("ab", 20)
	sources := t.TempDir()
	place := idPath(sources, id)
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(place, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range problemsOf(t, trace.Module{ID: 1, Path: program, BuildID: id}, sources) {
		if strings.Contains(p, "0123456789abcdef") || !strings.Contains(p, "another") {
			t.Errorf("%q", p)
		}
	}
}

// A build-id is hexadecimal digits. Other texts selected files outside of the folder of debug files.
func TestBuildIDIsHexadecimal(t *testing.T) {
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, ".build-id", "ab"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "secret.debug"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"../../secret", "ab/../../secret", "ab/../../secretx", "abc", "ABCDEF", "ab\x00d", "",
		"ab", "g123", strings.Repeat("ab", 65)} {
		if path := idPath(folder, id); path != "" {
			t.Errorf("%q leads to %s", id, path)
		}
		for _, p := range problemsOf(t, trace.Module{ID: 1, Path: "/nowhere/lib.so", BuildID: id}, folder) {
			if strings.Contains(p, "secret.debug") {
				t.Errorf("%q: %s", id, p)
			}
		}
	}
	if got, want := idPath(folder, "abcd12"), filepath.Join(folder, ".build-id", "ab", "cd12.debug"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Only regular files are opened, whatever their name.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	id := strings.Repeat("ab", 20)
	sources := t.TempDir()
	place := idPath(sources, id)
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		t.Fatal(err)
	}
	pipe(t, place)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(place, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{place, link, "/dev/zero", "/dev/tty", "/proc/self/mem", "/proc/self/fd/0",
		"/proc/kmsg", "/proc/self/environ", filepath.Dir(place)} {
		if got := problemsOf(t, trace.Module{ID: 1, Path: path, BuildID: id}, sources); !slices.ContainsFunc(got,
			func(p string) bool { return strings.HasPrefix(p, path+" ") }) {
			t.Errorf("%s: %q", path, got)
		}
	}
	r := New(&trace.Tables{}, trace.Info{}, Options{PerfMap: place, Sources: []string{}})
	defer r.Close()
	r.Native(0x1100)
	if p := r.Problems(); len(p) != 1 || !strings.Contains(p[0], "not a regular file") {
		t.Errorf("a pipe as perf map: %q", p)
	}
}

// A sparse file of a few KiB may claim any number of sections, or one long name for all of them, which would exhaust
// memory.
func TestHugeHeaders(t *testing.T) {
	program := compiled(t, "gcc", "inlined.c", "-O2")
	whole, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	sections := binary.LittleEndian.Uint64(whole[0x28:])
	names := sections + 64*uint64(binary.LittleEndian.Uint16(whole[0x3e:]))
	for name, change := range map[string]func(file []byte) int64{
		"many sections": func(f []byte) int64 {
			binary.LittleEndian.PutUint16(f[0x3c:], 0)
			binary.LittleEndian.PutUint64(f[sections+0x20:], 1<<30)
			return 1 << 37
		},
		"long names": func(f []byte) int64 {
			binary.LittleEndian.PutUint64(f[names+0x20:], 1<<36)
			return 1 << 37
		},
		"one name for all": func(f []byte) int64 {
			const count, at = 100_000, 1 << 24
			binary.LittleEndian.PutUint64(f[0x28:], at)
			binary.LittleEndian.PutUint16(f[0x3c:], 0)
			binary.LittleEndian.PutUint16(f[0x3e:], 1)
			return at + 64*count
		},
	} {
		file := bytes.Clone(whole)
		size := change(file)
		path := filepath.Join(t.TempDir(), "huge")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Skip(err)
		}
		if name == "one name for all" {
			fillNames(t, path)
		}
		if im, err := openImage(path); err == nil || err.Error() != errNotObject.Error() {
			t.Errorf("%s: %v", name, err)
			if im != nil {
				im.close()
			}
		}
	}
}

// fillNames writes section headers at 16 MiB that share a name of 8 MiB.
func fillNames(t *testing.T, path string) {
	t.Helper()
	const count, at, names, length = 100_000, 1 << 24, 1 << 20, 8 << 20
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var headers bytes.Buffer
	for i := range count {
		s := elf.Section64{Type: uint32(elf.SHT_PROGBITS)}
		switch i {
		case 0:
			s = elf.Section64{Size: count}
		case 1:
			s = elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: names, Size: length + 1}
		}
		if err := binary.Write(&headers, binary.LittleEndian, s); err != nil {
			t.Fatal(err)
		}
	}
	for offset, content := range map[int64][]byte{at: headers.Bytes(), names: bytes.Repeat([]byte("n"), length)} {
		if _, err := file.WriteAt(content, offset); err != nil {
			t.Fatal(err)
		}
	}
}
