package analyzer

import (
	"fmt"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/trace"
)

// calls is a call stack, innermost first, and what it holds.
type calls struct {
	lines []trace.CodeID
	bytes uint64
}

// callersOf is the division of a program in which those stacks hold memory; a code's line is its number.
func callersOf(t *testing.T, list []calls) *report.Division {
	t.Helper()
	return divisionOf(t, callsSource(list))
}

func callsSource(list []calls) *memorySource {
	src := &memorySource{info: trace.Info{"process.cwd": "/home/ada", "python.version": "3.11"}, end: &trace.End{}}
	fillTables(&src.tables)
	for id, name := range map[trace.CodeID]string{1: "grow", 2: "take", 3: "encoder", 4: "decoder", 5: "main"} {
		src.tables.AddCode(trace.Code{ID: id, Name: name, QualName: name, File: "/home/ada/pool.py",
			FirstLine: int32(id)})
	}
	for i, c := range list {
		n := uint64(i + 1)
		var frames []trace.PyFrame
		for _, code := range c.lines {
			frames = append(frames, trace.PyFrame{Code: code})
		}
		src.tables.AddPyStack(trace.PyStack{ID: trace.StackID(300 + n), Frames: frames})
		src.events = append(src.events, trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelDriver,
			Mem: cuda.MemoryDevice, Seq: n, Time: int64(n) * 1000, Thread: 1, Addr: n << 24, Size: c.bytes,
			PyStack: trace.StackID(300 + n)})
	}
	return src
}

// TestFunction: where the call stacks of most memory come together, below what runs all of the program, is named,
// unless one of its lines holds most by itself.
func TestFunction(t *testing.T) {
	grow, take, layer, forward, start := trace.CodeID(1), trace.CodeID(2), trace.CodeID(3), trace.CodeID(4),
		trace.CodeID(5)
	for _, test := range []struct {
		name string
		list []calls
		want string
	}{
		{"a function that calls several", []calls{{[]trace.CodeID{grow, layer, forward, start}, 400},
			{[]trace.CodeID{take, layer, forward, start}, 300}, {[]trace.CodeID{layer, forward, start}, 200},
			{[]trace.CodeID{forward, start}, 50}, {[]trace.CodeID{start}, 50}}, "encoder (pool.py) 900"},
		{"one that calls itself", []calls{{[]trace.CodeID{grow, layer, layer, forward, start}, 400},
			{[]trace.CodeID{take, layer, forward, start}, 300}, {[]trace.CodeID{layer, forward, start}, 200}},
			"encoder (pool.py) 900"},
		{"what runs everything", []calls{{[]trace.CodeID{grow, forward, start}, 400},
			{[]trace.CodeID{take, forward, start}, 400}}, ""},
		{"a line that holds most", []calls{{[]trace.CodeID{grow, layer, forward, start}, 800},
			{[]trace.CodeID{take, layer, forward, start}, 100}}, ""},
		{"less than half", []calls{{[]trace.CodeID{grow, layer, forward, start}, 200},
			{[]trace.CodeID{take, layer, forward, start}, 200}, {[]trace.CodeID{start}, 500}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := Summarize(callsSource(test.list), Options{Question: Question{Sites: true}})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if f := s.Function; f != nil {
				got = fmt.Sprint(f.Name, " ", f.Bytes)
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestDivisionByCaller: a place with most of the memory, where clients of a pool come together, is divided by the next
// lines outwards that differ, and not where there is only one way to it.
func TestDivisionByCaller(t *testing.T) {
	grow, take, encoder, decoder, start := trace.CodeID(1), trace.CodeID(2), trace.CodeID(3), trace.CodeID(4),
		trace.CodeID(5)
	for _, test := range []struct {
		name string
		list []calls
		want map[string]uint64 // nil: not by callers
	}{
		{"behind the pool's own functions", []calls{{[]trace.CodeID{grow, take, encoder, start}, 600},
			{[]trace.CodeID{grow, take, decoder, start}, 300}, {[]trace.CodeID{start}, 100}},
			map[string]uint64{"pool.py:3 encoder": 600, "pool.py:4 decoder": 300}},
		{"at once", []calls{{[]trace.CodeID{grow, encoder, start}, 50}, {[]trace.CodeID{grow, start}, 70}},
			map[string]uint64{"pool.py:3 encoder": 50, "pool.py:5 main": 70}},
		{"recursive", []calls{{[]trace.CodeID{grow, grow, take, encoder, start}, 50},
			{[]trace.CodeID{grow, take, decoder, start}, 70}},
			map[string]uint64{"pool.py:3 encoder": 50, "pool.py:4 decoder": 70}},
		{"one way", []calls{{[]trace.CodeID{grow, take, start}, 500}, {[]trace.CodeID{grow, take, start}, 400}}, nil},
		{"a few bytes elsewhere", []calls{{[]trace.CodeID{grow, encoder, start}, 9900},
			{[]trace.CodeID{grow, decoder, start}, 100}}, nil},
		{"no callers known", []calls{{[]trace.CodeID{grow}, 500}, {[]trace.CodeID{grow, start}, 500}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := callersOf(t, test.list)
			if by := d != nil && d.By == report.ByCaller; by != (test.want != nil) {
				t.Fatalf("%+v", d)
			} else if !by {
				return
			}
			if len(d.Rows) != len(test.want) || d.Site != "pool.py:1 grow" {
				t.Fatalf("%+v", d)
			}
			for _, row := range d.Rows {
				if row.Bytes != test.want[row.Key] {
					t.Errorf("%+v, want %v", row, test.want)
				}
			}
		})
	}
}
