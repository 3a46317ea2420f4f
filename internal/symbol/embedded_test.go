package symbol

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"memtrace/trace"
)

// The symbols that Collect takes from the files are returned by a resolver without the files.
func TestEmbedded(t *testing.T) {
	var tables trace.Tables
	var pcs []uint64
	for i, flags := range [][]string{{"-O2", "-g"}, {"-O2", "-s"}} {
		whole := compiled(t, "g++", "inlined.cc", append(flags, "-gdwarf-4")...)
		base := uint64(i+1) << 40
		m := moduleOf(t, whole, base)
		m.ID, m.End = trace.ModuleID(i+1), base+1<<39
		tables.AddModule(m)
		named := compiled(t, "g++", "inlined.cc", "-O2", "-gdwarf-4")
		for _, a := range spread(slices.Sorted(maps.Keys(functionNames(t, named))), 400) {
			pcs = append(pcs, base+a+1)
		}
	}
	outside := uint64(0x1234567)
	tables.AddStack(trace.Stack{ID: 1, Frames: append(pcs, outside)})
	files := New(&tables, nil, Options{Sources: []string{}})
	symbols := Collect(&tables, files)
	inside, wholly := CollectInside(&tables, nil, func() bool { return false })
	if len(symbols) != len(slices.Compact(slices.Sorted(slices.Values(pcs)))) || !wholly ||
		len(inside) != len(symbols) {
		t.Errorf("%d and %d symbols for %d addresses", len(symbols), len(inside), len(pcs))
	}
	for i := range min(len(symbols), len(inside)) {
		if !slices.Equal(symbols[i].Frames, inside[i].Frames) || symbols[i].Address != inside[i].Address {
			t.Fatalf("inside of the process: %+v, want %+v", inside[i], symbols[i])
		}
	}
	if some, wholly := CollectInside(&tables, nil, stopAfter(10)); wholly || len(some) < 9 || len(some) > 10 {
		t.Errorf("stopped after 10: %d symbols, %v", len(some), wholly)
	}

	read := written(t, &tables, symbols)
	reader := New(read, nil, Options{NoFiles: true})
	for _, pc := range append(pcs, outside) {
		got, want := reader.Native(pc), files.Native(pc)
		if len(got) != len(want) {
			t.Fatalf("%#x: %+v, want %+v", pc, got, want)
		}
		for i := range want {
			w := want[i]
			if w.Inlined {
				w.Start = 0 // not kept for these
			}
			if got[i] != w {
				t.Fatalf("%#x: %+v, want %+v", pc, got[i], w)
			}
		}
	}
	noProblems(t, reader)
	if more := Collect(read, New(read, nil, Options{Sources: []string{}})); len(more) != 0 {
		t.Errorf("%d symbols are collected again", len(more))
	}
}

// Code compiled at run time keeps its names, too: its map is gone after the run.
func TestEmbeddedCompiledCode(t *testing.T) {
	mapFile := filepath.Join(t.TempDir(), "perf.map")
	if err := os.WriteFile(mapFile, []byte("100 10 _ZN4toys4spinEi\n200 20 py::spam:/a/b.py\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var tables trace.Tables
	pcs := []uint64{0x10a, 0x20a, 0x500}
	tables.AddStack(trace.Stack{ID: 1, Frames: pcs})
	files := New(&tables, nil, Options{PerfMap: mapFile})
	symbols := Collect(&tables, files)
	if len(symbols) != 2 {
		t.Errorf("%d symbols, want 2", len(symbols))
	}
	reader := New(written(t, &tables, symbols), nil, Options{NoFiles: true})
	for _, pc := range pcs {
		if got, want := reader.Native(pc), files.Native(pc); !slices.Equal(got, want) {
			t.Errorf("%#x: %+v, want %+v", pc, got, want)
		}
	}
}

func stopAfter(n int) func() bool {
	return func() bool {
		n--
		return n < 0
	}
}

// written sends a dictionary and symbols through a file.
func written(t *testing.T, tables *trace.Tables, symbols []trace.Symbol) *trace.Tables {
	t.Helper()
	var file bytes.Buffer
	w, err := trace.NewWriter(&file, trace.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range tables.Modules() {
		err = errors.Join(err, w.WriteModule(m))
	}
	if err = errors.Join(err, w.WriteSymbols(symbols), w.Close(trace.End{Reason: "exit"})); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader(&file, int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := r.ReadBatch(); errors.Is(err, io.EOF) {
			return r.Tables()
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
