package importer

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"memtrace/cuda"
	"memtrace/trace"
)

// TestNsys imports a file of the tables that nsys writes, as SQLite wrote it in pages of 512 bytes: calls that are not
// in the order of their times, of two processes at one address, of a pool, of pinned memory, of an unknown kind.
func TestNsys(t *testing.T) {
	events, r, result, err := run(t, Find("nsys"), sample(t, "nsys.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	kinds, names := map[cuda.MemoryKind]uint64{}, map[string]uint64{}
	last := int64(0)
	for _, e := range events {
		if e.Time < last {
			t.Errorf("event %d is older than the one before", e.Seq)
		}
		if last = e.Time; e.Kind != trace.EventAlloc {
			continue
		}
		kinds[e.Mem] += e.Size
		var list []string
		for _, pc := range r.Tables().Stack(e.Stack) {
			m, _ := r.Tables().ModuleAt(pc - 1)
			symbols, _ := r.Tables().Symbol(m.ID, pc)
			list = append(list, symbols[0].Function)
		}
		names[e.Runtime.String()+" "+strings.Join(list, ", ")] += e.Size
	}
	if want := (map[cuda.MemoryKind]uint64{cuda.MemoryDevice: 180*mib + 120*4096, cuda.MemoryAsync: mib,
		cuda.MemoryHost: 16 * mib}); !maps.Equal(kinds, want) {
		t.Errorf("by kind %v, want %v", kinds, want)
	}
	if names["cudaMalloc load_batch, main"] != 100*mib || names["cudaMalloc main"] != 50*mib ||
		names["cudaMallocHost "] != 16*mib {
		t.Errorf("by call and stack %v", names)
	}
	if most := peaks(t, events); most[0] != 180*mib {
		t.Errorf("peaks %v", most)
	}
	if d := r.Tables().Devices(); len(d) != 1 || d[0].Name != "NVIDIA H100" || d[0].TotalBytes != 80<<30 {
		t.Errorf("devices %+v", d)
	}
	says(t, result, "2 processes were profiled", "does not allocate were left out: 1", "unknown kind were left out: 1")
}

func TestBadSQLiteFilesAreRefused(t *testing.T) {
	whole := sample(t, "nsys.sqlite")
	swap := func(old, new string) []byte { return bytes.ReplaceAll(whole, []byte(old), []byte(new)) }
	leaf := bytes.Clone(whole)
	for at := 512; at < len(leaf); at += 512 { // all pages but the first
		leaf[at] = 0x7f
	}
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"no memory calls", swap("CUDA_GPU_MEMORY_USAGE_EVENTS", "CUDA_GPU_MEMORY_USAGE_EVENTX"),
			"--cuda-memory-usage=true"},
		{"no kinds", swap("memKind   ", "memKinds  "), "has no column memKind"},
		{"cut", whole[:len(whole)/2], "cut: the SQLite file is shorter"},
		{"other pages", leaf, "damaged"},
		{"no SQLite file", []byte("SQLite format 4"), "no SQLite file"},
	} {
		if _, _, _, err := run(t, Find("nsys"), c.file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 { // whatever they contain, reading ends
		damaged := bytes.Clone(whole)
		for range 1 + random.IntN(20) {
			damaged[random.IntN(len(damaged))] = byte(random.Uint32())
		}
		_, _, _, _ = run(t, Find("nsys"), damaged)
	}
}
