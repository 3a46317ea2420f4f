package analyzer

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// libraryLoop is a trace of a program whose line train.py:27 calls a library's training loop: layers of a model
// allocate there, some of it through other functions of the library. modules: the framework named the modules. main is
// the part, in a hundred, of blocks that the line asked for.
func libraryLoop(seed uint64, layers int, modules bool,
	main int) (src *memorySource, byModule, byInner map[string]uint64, other uint64) {
	rng := rand.New(rand.NewPCG(seed, 9))
	src = &memorySource{info: trace.Info{"process.cwd": "/home/ada", "python.version": "3.11"}, end: &trace.End{}}
	t := &src.tables
	fillTables(t)
	const library = "/venv/lib/python3.11/site-packages/"
	for i, c := range []struct {
		file, name string
		line       int32
	}{{"/home/ada/train.py", "main", 27}, {library + "trainer/loop.py", "run", 5},
		{library + "trainer/attention.py", "Attention.forward", 40}, {library + "trainer/attention.py", "eager", 12},
		{library + "trainer/mlp.py", "Mlp.forward", 3}, {library + "torch/nn/functional.py", "softmax", 900},
		{"/usr/lib/python3.11/contextlib.py", "inner", 80}, {"/home/ada/train.py", "load", 9}} {
		t.AddCode(trace.Code{ID: trace.CodeID(100 + i), Name: c.name, QualName: c.name, File: c.file,
			FirstLine: c.line})
	}
	byModule, byInner = make(map[string]uint64), make(map[string]uint64)
	var seq uint64
	add := func(e trace.Event) {
		seq++
		e.Seq, e.Time, e.Thread = seq, int64(seq)*1000, 1
		src.events = append(src.events, e)
	}
	stack := trace.StackID(300)
	for layer := range layers {
		for i, part := range []struct {
			path   string
			codes  []trace.CodeID
			module string
		}{{"attn", []trace.CodeID{105, 106, 103, 102, 101, 100}, "trainer/attention.py:12 eager"},
			{"mlp", []trace.CodeID{105, 104, 101, 100}, "trainer/mlp.py:3 Mlp.forward"}} {
			object := uint64(0x1000 + 16*(2*layer+i))
			path := fmt.Sprintf("model.layers.%d.%s", layer, part.path)
			if modules {
				name := trace.StringID(1000 + 2*layer + i)
				t.AddString(name, path)
				add(trace.Event{Kind: trace.EventName, Category: trace.CategoryModule, Handle: object, Name: name})
			}
			var frames []trace.PyFrame
			for n, code := range part.codes {
				f := trace.PyFrame{Code: code}
				if n == len(part.codes)-3 {
					f.Self = object
				}
				frames = append(frames, f)
			}
			stack++
			t.AddPyStack(trace.PyStack{ID: stack, Frames: frames})
			for range 1 + rng.IntN(4) {
				size := uint64(1+rng.IntN(1000)) << 10
				add(trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice,
					Addr: 0x7f0000000000 + seq<<24, Size: size, PyStack: stack})
				byModule[path] += size
				byInner[part.module] += size
			}
		}
	}
	t.AddPyStack(trace.PyStack{ID: 299, Frames: []trace.PyFrame{{Code: 107}}})
	var sum uint64
	for _, bytes := range byInner {
		sum += bytes
	}
	if main < 100 {
		other = sum * uint64(100-main) / uint64(main)
		add(trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, Addr: 0x10,
			Size: other, PyStack: 299})
	}
	return src, byModule, byInner, other
}

func divisionOf(t *testing.T, src *memorySource) *report.Division {
	t.Helper()
	s, err := Summarize(src, Options{Question: Question{Sites: true}, Symbols: symbol.Options{NoFiles: true}})
	if err != nil {
		t.Fatal(err)
	}
	return s.Division
}

// TestDivisionByModule: the line that calls the library is divided by folded modules, whose bytes are sums over the
// blocks.
func TestDivisionByModule(t *testing.T) {
	for seed := range uint64(20) {
		src, byModule, _, other := libraryLoop(seed, 8, true, 80)
		d := divisionOf(t, src)
		if d == nil || d.By != "module" || d.Site != "train.py:27 main" || !d.User || len(d.Rows) != 2 ||
			d.RestCount != 0 {
			t.Fatalf("seed %d: %+v", seed, d)
		}
		var sum uint64
		for _, row := range d.Rows {
			part := strings.TrimPrefix(row.Key, "model.layers.{0..7}.")
			want, least, most := uint64(0), ^uint64(0), uint64(0)
			for path, bytes := range byModule {
				if strings.HasSuffix(path, part) {
					want, least, most = want+bytes, min(least, bytes), max(most, bytes)
				}
			}
			if row.Bytes != want || row.Count != 8 || row.EachMin != least || row.EachMax != most || row.Below ||
				!row.Known {
				t.Errorf("seed %d: %+v, want %d bytes, each %d to %d", seed, row, want, least, most)
			}
			inner := map[string]string{"attn": "trainer/attention.py:12 eager",
				"mlp": "trainer/mlp.py:3 Mlp.forward"}[part]
			if row.Inner == nil || row.Inner.Title() != inner || row.Inner.Bytes != want {
				t.Errorf("seed %d: the function of %s is %+v, want %s", seed, row.Key, row.Inner, inner)
			}
			sum += row.Bytes
		}
		if sum != d.Bytes || d.WholeBytes != sum+other {
			t.Errorf("seed %d: rows hold %d of %d of %d", seed, sum, d.Bytes, d.WholeBytes)
		}
	}
}

// TestDivisionByInner: without names of modules the innermost functions outside of the framework say more.
func TestDivisionByInner(t *testing.T) {
	src, _, byInner, _ := libraryLoop(1, 8, false, 80)
	d := divisionOf(t, src)
	if d == nil || d.By != "inner" || len(d.Rows) != len(byInner) {
		t.Fatalf("%+v", d)
	}
	for _, row := range d.Rows {
		if row.Bytes != byInner[row.Key] || row.Count != 1 {
			t.Errorf("%+v, want %d", row, byInner[row.Key])
		}
	}
}

// TestNoDivision: there is nothing to divide where no place holds most, and nothing to say where nothing is known.
func TestNoDivision(t *testing.T) {
	src, _, _, _ := libraryLoop(1, 8, true, 40)
	if d := divisionOf(t, src); d != nil && d.Site != "train.py:9 load" {
		t.Errorf("40 %% are divided: %+v", d)
	}
	src, _, _, _ = libraryLoop(1, 0, true, 100)
	if d := divisionOf(t, src); d != nil {
		t.Errorf("no blocks are divided: %+v", d)
	}
	for seed := range uint64(20) {
		if d := divisionOf(t, pythonSource(seed, 400)); d != nil && d.By == "module" {
			t.Errorf("by modules that nobody named: %+v", d)
		}
	}
}
