package export

import (
	"encoding/json"
	"testing"

	"memtrace/internal/guest"
)

func readBlocks(t *testing.T, data []byte) (f blocksFile) {
	t.Helper()
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	n := len(f.Born)
	if f.Schema != BlocksSchema || len(f.Died) != n || len(f.Bytes) != n || len(f.Requested) != n ||
		len(f.Device) != n || len(f.Owner) != n {
		t.Fatalf("%s with columns of %d, %d, %d, %d, %d, %d rows", f.Schema, n, len(f.Died), len(f.Bytes),
			len(f.Requested), len(f.Device), len(f.Owner))
	}
	return f
}

// level returns the bytes that are live after each event.
func (f *blocksFile) level() []uint64 {
	change := make([]uint64, len(f.TimesNS)+1)
	for i, bytes := range f.Bytes {
		change[f.Born[i]] += bytes
		change[f.Died[i]] -= bytes
	}
	var live uint64
	for i := range f.TimesNS {
		live += change[i]
		change[i] = live
	}
	return change[:len(f.TimesNS)]
}

// Blocks add up to the level's peak and to what is left, and each has an owner with a key of every grouping.
func TestBlocksAddUpToTheReport(t *testing.T) {
	several := 0
	for name, raw := range guest.ReportTraces(t) {
		data, written := replayed(t, Blocks, runOf(raw))
		f := readBlocks(t, data)
		want := written.Summary.Main()
		var most, last uint64
		for _, live := range f.level() {
			most, last = max(most, live), live
		}
		if most != want.PeakBytes || last != want.LiveBytes || f.PeakBytes != want.PeakBytes {
			t.Errorf("%s: %d at the peak and %d in the end, the report has %d and %d", name, most, last, want.PeakBytes,
				want.LiveBytes)
		}
		for i := range f.Owner {
			if o := f.Owners[f.Owner[i]]; len(o.Keys) != len(f.By) || f.Requested[i] > f.Bytes[i] {
				t.Errorf("%s: block %d of %d bytes, %d requested, is %+v's", name, i, f.Bytes[i], f.Requested[i], o)
			}
		}
		if len(f.Born) > 1 {
			several++
		}
	}
	if several < 3 {
		t.Errorf("only %d files have several blocks", several)
	}
}

// Marks stand among the events: each knows how many came before it, those of memtrace itself are left out, and what was
// requested of a block is told apart from its size.
func TestBlocksMarks(t *testing.T) {
	raw := guest.Encoded(t, `trace version=1
thread id=1 tid=7 name="python3"
string id=1 value="before"
string id=2 value="between"
string id=3 value="memtrace.own"
mark seq=1 time=500 thread=1 name=1
alloc seq=2 time=1000 thread=1 level=framework mem=device device=0 addr=0x1000 size=1024 rest=25
mark seq=3 time=2000 thread=1 name=2
mark seq=4 time=2000 thread=1 name=3
free seq=5 time=3000 thread=1 level=framework mem=device device=0 addr=0x1000
alloc seq=6 time=4000 thread=1 level=framework mem=device device=1 addr=0x2000 size=512
mark seq=7 time=5000 thread=1 name=1
end reason="exit" time=9000
`)
	data, _ := replayed(t, Blocks, runOf(raw))
	f := readBlocks(t, data)
	marks, _ := json.Marshal(f.Marks)
	if want := `[{"name":"before","time_ns":500,"event":0},{"name":"between","time_ns":2000,"event":1},` +
		`{"name":"before","time_ns":5000,"event":3}]`; string(marks) != want {
		t.Errorf("marks %s, want %s", marks, want)
	}
	columns, _ := json.Marshal([]any{f.TimesNS, f.Born, f.Died, f.Bytes, f.Requested, f.Device})
	if want := `[[1000,3000,4000],[0,2],[1,3],[1024,512],[1000,512],[0,1]]`; string(columns) != want {
		t.Errorf("columns %s, want %s", columns, want)
	}
}
