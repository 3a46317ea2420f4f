package analyzer

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/callstack"
	"memtrace/internal/cause"
	"memtrace/internal/moment"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// pythonSource is a trace of a program whose blocks come from random pairs of stacks: Python functions f0 to f5 of two
// files, called from each other.
func pythonSource(seed uint64, events int) *memorySource {
	rng := rand.New(rand.NewPCG(seed, 5))
	src := &memorySource{info: trace.Info{"process.cwd": "/home/ada", "python.version": "3.11",
		"python.eval": "900000-900100"}, end: &trace.End{}}
	t := &src.tables
	fillTables(t)
	t.AddModule(trace.Module{ID: 9, Start: 0x900000, End: 0x910000, Base: 0x900000,
		Path: "/usr/lib/libpython3.11.so.1.0"})
	for i := range trace.CodeID(6) {
		file := []string{"/home/ada/train.py", "/venv/lib/python3.11/site-packages/torch/functional.py"}[i%2]
		t.AddCode(trace.Code{ID: 100 + i, Name: fmt.Sprintf("f%d", i), QualName: fmt.Sprintf("f%d", i), File: file,
			FirstLine: int32(10 * (i + 1))})
	}
	for i := range trace.StackID(12) {
		t.AddStack(trace.Stack{ID: 200 + i, Frames: []uint64{1<<20 + 0x100*uint64(i+1), 0x900010},
			End: trace.StackInterpreter})
		var frames []trace.PyFrame
		for range 1 + rng.IntN(4) {
			frames = append(frames, trace.PyFrame{Code: 100 + trace.CodeID(rng.IntN(6)), Self: uint64(rng.IntN(2))})
		}
		t.AddPyStack(trace.PyStack{ID: 300 + i, Frames: frames, End: []trace.StackEnd{trace.StackWhole,
			trace.StackDepth}[rng.IntN(2)]})
	}
	live := make(map[uint64]bool)
	for n := range events {
		addr := 0x7f0000000000 + uint64(rng.IntN(40))<<21
		e := trace.Event{Kind: trace.EventAlloc, Seq: uint64(n + 1), Time: int64(n) * 1000, Level: cuda.LevelFramework,
			Mem: cuda.MemoryDevice, Addr: addr,
			Size: uint64(1+rng.IntN(1<<20)) * 2, Stack: 200 + trace.StackID(rng.IntN(13)), Thread: 1,
			Tag: trace.StringID(10 + rng.IntN(3))}
		if e.Stack == 212 {
			e.Stack = 0
		} else if rng.IntN(8) > 0 {
			e.PyStack = 300 + trace.StackID(rng.IntN(12))
		}
		if live[addr] {
			e.Kind = trace.EventFree
		}
		live[addr] = !live[addr]
		src.events = append(src.events, e)
	}
	return src
}

// slowSite is the site of an event, found the obvious way.
func slowSite(src *memorySource, e trace.Event) string {
	frames, _ := src.tables.PyStack(e.PyStack)
	for _, f := range frames {
		if code, _ := src.tables.Code(f.Code); code.File == "/home/ada/train.py" {
			return fmt.Sprintf("train.py:%d %s", code.FirstLine, code.QualName)
		}
	}
	if native := src.tables.Stack(e.Stack); len(native) > 0 {
		return fmt.Sprintf("libc10_cuda.so+%#x", native[0]-1-1<<20)
	}
	return report.NoStack
}

// TestSitesAgreeWithOracle compares places, and the places of rows, with sums over the blocks that are live in the end.
func TestSitesAgreeWithOracle(t *testing.T) {
	for seed := range uint64(40) {
		src := pythonSource(seed, 400)
		live := make(map[uint64]trace.Event)
		for _, e := range src.events {
			if e.Kind == trace.EventAlloc {
				live[e.Addr] = e
			} else {
				delete(live, e.Addr)
			}
		}
		want, whole := make(map[string]uint64), uint64(0)
		byTag := make(map[string]map[string]uint64)
		for _, e := range live {
			site, tag := slowSite(src, e), src.tables.String(e.Tag)
			want[site] += e.Size
			whole += e.Size
			if byTag[tag] == nil {
				byTag[tag] = make(map[string]uint64)
			}
			byTag[tag][site] += e.Size
		}
		s, err := Summarize(src, Options{Question: Question{Sites: true, At: must(moment.Parse("exit"))},
			Symbols: symbol.Options{NoFiles: true}})
		if err != nil {
			t.Fatal(err)
		}
		if s.Sites.WholeBytes != whole || len(s.Sites.Places) != len(want) || s.Sites.Level != "framework" ||
			s.Sites.Moment != "exit" {
			t.Fatalf("seed %d: %d places with %d bytes, want %d with %d", seed, len(s.Sites.Places), s.Sites.WholeBytes,
				len(want), whole)
		}
		for _, p := range s.Sites.Places {
			if p.Bytes != want[p.Key] {
				t.Errorf("seed %d: %s holds %d, want %d", seed, p.Key, p.Bytes, want[p.Key])
			}
			if p.User != strings.HasPrefix(p.Key, "train.py") || p.StackBytes > p.Bytes || p.StackCount == 0 {
				t.Errorf("seed %d: %+v", seed, p)
			}
		}
		checkRowSites(t, seed, s.Ledger("tag"), byTag)
		if s.By[0] != "tag" {
			t.Errorf("by %v although there are tags", s.By)
		}
	}
}

func checkRowSites(t *testing.T, seed uint64, l *report.Ledger, want map[string]map[string]uint64) {
	t.Helper()
	for _, row := range l.Rows {
		var largest []uint64
		for site, bytes := range want[row.Key] {
			if site != report.NoStack && bytes >= row.Bytes/10 {
				largest = append(largest, bytes)
			}
		}
		slices.SortFunc(largest, func(a, b uint64) int { return int(int64(b) - int64(a)) })
		if row.Bytes < l.WholeBytes/100 {
			largest = nil
		}
		if len(row.Sites) != min(2, len(largest)) {
			t.Errorf("seed %d: row %s has %d places, want %d", seed, row.Key, len(row.Sites), min(2, len(largest)))
			continue
		}
		for i, site := range row.Sites {
			if site.Bytes != largest[i] || want[row.Key][site.Key] != site.Bytes {
				t.Errorf("seed %d: row %s: %+v, want %d", seed, row.Key, site, largest[i])
			}
		}
	}
}

// TestFocusOnFrames: filters look at every frame, also at those that are folded away.
func TestFocusOnFrames(t *testing.T) {
	for _, test := range []struct {
		focus string
		keep  func(src *memorySource, e trace.Event) bool
	}{
		{`^f1$`, func(src *memorySource, e trace.Event) bool { return usesCode(src, e, 101) }},
		{`/torch/functional\.py$`, func(src *memorySource, e trace.Event) bool {
			return usesCode(src, e, 101) || usesCode(src, e, 103) || usesCode(src, e, 105)
		}},
	} {
		src := pythonSource(3, 400)
		var kept, dropped uint64
		for _, e := range src.events {
			if e.Kind == trace.EventAlloc && test.keep(src, e) {
				kept++
			} else if e.Kind == trace.EventAlloc {
				dropped++
			}
		}
		for _, filter := range []struct {
			opts Options
			want uint64
		}{{Options{Focus: regexp.MustCompile(test.focus)}, kept}, {Options{Ignore: regexp.MustCompile(test.focus)},
			dropped}} {
			src.next = 0
			s, err := Summarize(src, filter.opts)
			if err != nil {
				t.Fatal(err)
			}
			if s.Framework.AllocCount != filter.want || kept == 0 || dropped == 0 {
				t.Errorf("%v: %d allocations pass, want %d", s.Filter, s.Framework.AllocCount, filter.want)
			}
		}
	}
}

func usesCode(src *memorySource, e trace.Event, code trace.CodeID) bool {
	frames, _ := src.tables.PyStack(e.PyStack)
	return slices.ContainsFunc(frames, func(f trace.PyFrame) bool { return f.Code == code })
}

// TestStackHealth counts allocations by how much is known of their stacks.
func TestStackHealth(t *testing.T) {
	src := pythonSource(1, 300)
	var want report.StackHealth
	for _, e := range src.events {
		if e.Kind != trace.EventAlloc {
			continue
		}
		want.AllocCount++
		frames, end := src.tables.PyStack(e.PyStack)
		if len(frames) > 0 {
			want.PythonCount++
		} else if e.Stack == 0 {
			want.NoneCount++
		}
		if end == trace.StackDepth {
			want.CutCount++
		}
	}
	want.NativeCut, want.PythonCut = map[string]uint64{}, map[string]uint64{"depth": want.CutCount}
	s, err := Summarize(src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(s.Health.Stacks) != fmt.Sprint(want) || want.CutCount == 0 || want.NoneCount == 0 {
		t.Errorf("%+v, want %+v", s.Health.Stacks, want)
	}
	if note := strings.Join(s.Notes, "\n"); !strings.Contains(note, "are not whole: Python depth") {
		t.Errorf("no note about cut stacks: %s", note)
	}
	s.Health.Stacks.CutCount = s.Health.Stacks.AllocCount / 100
	if note := cause.CutStacks(s, nil); note != "" {
		t.Errorf("a note about next to nothing: %s", note)
	}
}

// TestLateInterpreter: stacks that were looked at before the trace told where the interpreter's loop is are looked at
// again.
func TestLateInterpreter(t *testing.T) {
	src := pythonSource(2, 10)
	src.tables.AddStack(trace.Stack{ID: 400, Frames: []uint64{1<<20 + 0x10, 0x900010, 3<<20 + 0x20}})
	src.tables.AddPyStack(trace.PyStack{ID: 400, Frames: []trace.PyFrame{{Code: 100, Entry: true}}})
	info := trace.Info{}
	stacks := callstack.NewStacks(&src.tables, nil)
	stacks.Info, stacks.Options = func() trace.Info { return info }, symbol.Options{NoFiles: true}
	pair := callstack.Pair{Native: 400, Python: 400}
	if got := len(stacks.Of(pair).All); got != 4 {
		t.Errorf("%d frames before the loop is known, want 4", got)
	}
	info["python.eval"] = "900000-900100"
	if got := titlesOf(stacks.Of(pair).All); got != "libc10_cuda.so+0xf, f0, train+0x1f" {
		t.Errorf("%s", got)
	}
}

// TestNamesBehindTheEvents: filters know the names that a trace holds behind its events, if they may look ahead.
func TestNamesBehindTheEvents(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		src, whole := pythonSource(4, 200), pythonSource(4, 200)
		whole.tables.AddSymbol(trace.Symbol{Module: 1, Address: 1<<20 + 0x100,
			Frames: []trace.SymbolFrame{{Function: "grow_pool"}}})
		opts := Options{Focus: regexp.MustCompile("^grow_pool$"), Symbols: symbol.Options{NoFiles: true}}
		if ahead {
			opts.Ahead = whole
		}
		s, err := Summarize(src, opts)
		if err != nil {
			t.Fatal(err)
		}
		if found := s.Framework.AllocCount > 0; found != ahead {
			t.Errorf("ahead %v: %d allocations pass", ahead, s.Framework.AllocCount)
		}
	}
	if _, err := Summarize(pythonSource(4, 20), Options{Focus: regexp.MustCompile("x"),
		Ahead: &failingSource{}}); err == nil {
		t.Error("a source that cannot be read was read ahead")
	}
}

// TestNamelessNote: code of the program itself that has no names is worth a note, unless it is known why.
func TestNamelessNote(t *testing.T) {
	src := pythonSource(4, 20)
	src.info = trace.Info{}
	for i := range src.events {
		src.events[i].Stack, src.events[i].PyStack = stackProgram, 0
	}
	s, err := Summarize(src, Options{Question: Question{Sites: true}, Symbols: symbol.Options{NoFiles: true}})
	if err != nil {
		t.Fatal(err)
	}
	s.Health.SymbolProblems = nil
	if note := cause.Nameless(s, nil); !strings.Contains(note, "Functions of train have no names") {
		t.Errorf("note %q", note)
	}
	s.Health.SymbolProblems = []string{"train is another file"}
	if note := cause.Nameless(s, nil); note != "" {
		t.Errorf("note %q although the reason is known", note)
	}
}

func titlesOf(frames []*callstack.Frame) string {
	var list []string
	for _, f := range frames {
		list = append(list, f.Title())
	}
	return strings.Join(list, ", ")
}
