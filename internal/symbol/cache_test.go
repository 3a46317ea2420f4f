package symbol

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func cachedFrames() map[uint64][]Frame {
	return map[uint64][]Frame{
		0x10: {{Function: "f", FullFunction: "f", File: "/a/b.c", Line: 3, Start: 8, Address: 0x10,
			Inlined: true}, {Function: "g", FullFunction: "g", Address: 0x10, Start: 8}},
		0x7fffffffffff: {{Address: 0x7fffffffffff, Start: 0x7ffffffffff0}},
	}
}

func TestCacheFile(t *testing.T) {
	source, frames, err := decodeCache(encodeCache("lib 1 2", cachedFrames()))
	if err != nil || source != "lib 1 2" || !maps.EqualFunc(frames, cachedFrames(), slices.Equal) {
		t.Errorf("%q %+v %v", source, frames, err)
	}
	whole := encodeCache("x", cachedFrames())
	for n := range whole {
		if _, _, err := decodeCache(whole[:n]); err == nil {
			t.Errorf("the first %d bytes are taken", n)
		}
		damaged := bytes.Clone(whole)
		damaged[n] ^= 1
		if _, _, err := decodeCache(damaged); err == nil {
			t.Errorf("a change at %d is not noticed", n)
		}
	}
}

// Cached names are found without reading the file, and only while the sources are the same.
func TestCacheIsUsed(t *testing.T) {
	path := compiled(t, "gcc", "inlined.c", "-O2", "-g")
	folder := filepath.Join(t.TempDir(), "memtrace", "symbols")
	o := Options{Cache: folder, Sources: []string{}}
	at := address(t, path, "table_lookup") + 1
	module := moduleOf(t, path, 0)
	want := resolverOf(t, path, 0, Options{}).Native(at)

	r := resolverWith(module, o)
	r.Warm([]uint64{at})
	if got := resolverWith(module, o).Native(at); !slices.Equal(got, want) {
		t.Errorf("from the cache: %+v, want %+v", got, want)
	}
	kept := filepath.Join(folder, module.BuildID)
	if st, err := os.Stat(kept); err != nil || st.Mode().Perm()&0o077 != 0 {
		t.Fatalf("%v %v", st, err)
	}

	// The object file is gone: cached names stay known, others stay unknown, and that is reported.
	moved := path + ".moved"
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	r = resolverWith(module, o)
	if got := r.Native(at); !slices.Equal(got, want) {
		t.Errorf("without the file: %+v, want %+v", got, want)
	}
	if got := r.Native(at + 4)[0]; got.Function != "" {
		t.Errorf("an address that was never looked up: %+v", got)
	}
	if p := r.Problems(); len(p) != 1 {
		t.Errorf("problems %q", p)
	}
	r.Close()
	if err := os.Rename(moved, path); err != nil {
		t.Fatal(err)
	}

	// Forged names in the cache are returned, which proves that the cache was read; they are not when the sources
	// differ.
	lie := func(source string) {
		frames := map[uint64][]Frame{at - 1: {{FullFunction: "lie", Address: at - 1}}}
		if err := os.WriteFile(kept, encodeCache(source, frames), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r = resolverWith(module, o)
	r.Native(at)
	source := r.object(module).source()
	lie(source)
	if got := resolverWith(module, o).Native(at)[0].Function; got != "lie" {
		t.Errorf("the cache was not asked: %q", got)
	}
	lie(source + " and a debug file")
	if got := resolverWith(module, o).Native(at); !slices.Equal(got, want) {
		t.Errorf("names from other sources are used: %+v", got)
	}
	if err := os.WriteFile(kept, []byte("no cache"), 0o600); err != nil {
		t.Fatal(err)
	}
	r = resolverWith(module, o)
	if got := r.Native(at); !slices.Equal(got, want) {
		t.Errorf("with a damaged cache: %+v", got)
	}
	noProblems(t, r)
}

// A folder that cannot be written costs nothing but the cache.
func TestCacheCannotBeWritten(t *testing.T) {
	path := compiled(t, "gcc", "inlined.c", "-O2", "-g")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	at := address(t, path, "table_lookup") + 1
	r := resolverOf(t, path, 0, Options{Cache: filepath.Join(file, "below")})
	r.Warm([]uint64{at})
	if r.Native(at)[0].Function == "" {
		t.Error("no name")
	}
	noProblems(t, r)
}

func TestCachePath(t *testing.T) {
	for id, want := range map[string]string{"": "", "12": "", "../../etc/passwd": "",
		"0123456789abcdef": "/c/0123456789abcdef", "0123456789ABCDEF": ""} {
		if got := cachePath("/c", id); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
	if got := cachePath("", "0123456789abcdef"); got != "" {
		t.Errorf("without a folder: %q", got)
	}
}

func FuzzCache(f *testing.F) {
	f.Add(encodeCache("lib 1 2", cachedFrames()))
	f.Add(encodeCache("", nil))
	f.Add([]byte(cacheMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > len(cacheMagic)+4 { // otherwise the checksum rejects nearly everything
			data = withChecksum(data)
		}
		source, frames, err := decodeCache(data)
		if err != nil {
			if frames != nil {
				t.Error("frames and an error")
			}
			return
		}
		again, framesAgain, err := decodeCache(encodeCache(source, frames))
		if err != nil || again != source || !maps.EqualFunc(frames, framesAgain, slices.Equal) {
			t.Errorf("%q %+v becomes %q %+v, %v", source, frames, again, framesAgain, err)
		}
	})
}
