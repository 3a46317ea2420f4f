package analyzer

import (
	"maps"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/oom"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// starved is pythonSource with a refused allocation behind it, asked for at the place of the 0th stacks.
func starved(seed uint64) (src *memorySource, refused trace.Event) {
	src = pythonSource(seed, 400)
	last := src.events[len(src.events)-1]
	refused = trace.Event{Kind: trace.EventAlloc, Seq: last.Seq + 1, Time: last.Time + 1000, Level: cuda.LevelDriver,
		Mem: cuda.MemoryDevice, Size: 1 << 40,
		Status: oom.StatusOutOfMemory, Stack: 200, PyStack: 300, Thread: 1}
	src.events = append(src.events, refused)
	return src, refused
}

// TestOOMPlaces compares the blocks by place, as the recorder tells them without a look into any file, with sums over
// what was live.
func TestOOMPlaces(t *testing.T) {
	for seed := range uint64(20) {
		src, refused := starved(seed)
		live := make(map[uint64]trace.Event)
		for _, e := range src.events[:len(src.events)-1] {
			live[e.Addr] = e
			if e.Kind == trace.EventFree {
				delete(live, e.Addr)
			}
		}
		want, whole := make(map[string]uint64), uint64(0)
		for _, e := range live {
			want[placeOrThread(src, e)] += e.Size
			whole += e.Size
		}
		w := oom.NewWatch(&src.tables, src.info, 1<<40)
		w.Apply(src.events)
		w.Finish()
		announced := w.Take()[0].Event
		if site := placeOrThread(src, refused); announced.Site != site &&
			(announced.Site != "" || site != "thread python3") {
			t.Errorf("seed %d: asked for at %q, want %q", seed, announced.Site, site)
		}
		if got := blockRowsOf(announced.Ledger("site")); !maps.Equal(got, want) {
			t.Errorf("seed %d: places %v, want %v", seed, got, want)
		}
		if announced.UsedBytes != whole {
			t.Errorf("seed %d: %d in use, want %d", seed, announced.UsedBytes, whole)
		}
	}
}

// placeOrThread is the place of an event in the program's own code, else its thread.
func placeOrThread(src *memorySource, e trace.Event) string {
	if frames, _ := src.tables.PyStack(e.PyStack); len(frames) > 0 {
		for _, f := range frames {
			if code, _ := src.tables.Code(f.Code); code.File == "/home/ada/train.py" {
				return slowSite(src, e)
			}
		}
		if e.Stack == 0 { // nothing but the library's Python is known
			code, _ := src.tables.Code(frames[0].Code)
			return code.QualName + " (torch/functional.py)"
		}
	}
	return "thread python3"
}

func blockRowsOf(l *report.Ledger) map[string]uint64 {
	rows := make(map[string]uint64)
	for _, row := range l.Rows {
		if row.Owner == report.OwnerBlocks {
			rows[row.Key] += row.Bytes
		}
	}
	return rows
}

// TestOOMPlacesAreBounded: the recorder names so many stacks and no more, and what is left is still somebody's.
func TestOOMPlacesAreBounded(t *testing.T) {
	src, _ := starved(1)
	w := oom.NewWatch(&src.tables, src.info, 1<<40)
	w.LimitStacks(3)
	w.Apply(src.events)
	w.Finish()
	announced := w.Take()[0].Event
	named, sum := 0, uint64(0)
	for place, bytes := range blockRowsOf(announced.Ledger("site")) {
		sum += bytes
		if place != "thread python3" {
			named++
		}
	}
	if sum != announced.UsedBytes || named == 0 || named > 3 {
		t.Errorf("%d of %d bytes at %d places", sum, announced.UsedBytes, named)
	}
}

// TestOOMWithoutPlaces: who does not ask for places gets none, and neither does a program without any of its own.
func TestOOMWithoutPlaces(t *testing.T) {
	for _, test := range []struct {
		name  string
		sites bool
		own   bool
		want  bool
	}{
		{"asked for", true, true, true},
		{"not asked for", false, true, false},
		{"nothing of its own", true, false, false},
	} {
		src, _ := starved(2)
		for i := range src.events {
			if !test.own {
				src.events[i].PyStack = 0
			}
		}
		s, err := Summarize(src, Options{Question: Question{Sites: test.sites}, Symbols: symbol.Options{NoFiles: true}})
		if err != nil {
			t.Fatal(err)
		}
		e := &s.OOM.Events[0]
		if got := len(e.Ledger("site").Rows) > 0; got != test.want || (e.Site != "") && !test.want {
			t.Errorf("%s: places %t at %q", test.name, got, e.Site)
		}
	}
}
