package analyzer

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"

	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/internal/rules"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// trainingEvents makes the events of a periodic program that holds about 20 000 blocks: every step allocates and frees
// the same plan with its tags and stacks, at addresses that a cache hands out last in, first out. It ends as it begins,
// so that it can be replayed again and again.
func trainingEvents(steps int) []trace.Event {
	const (
		lasting = 18_000 // parameters and optimizer state
		plan    = 2_000  // activations, freed in reverse order
	)
	rng := rand.New(rand.NewPCG(3, 4))
	var events []trace.Event
	var allocated uint64
	add := func(kind trace.EventKind, n int, size uint64) {
		if kind == trace.EventAlloc {
			allocated += size
		} else {
			allocated -= size
		}
		events = append(events, trace.Event{Kind: kind, Seq: uint64(len(events) + 1), Time: int64(len(events)) * 5000,
			Level: cuda.LevelFramework,
			Mem:   cuda.MemoryDevice, Addr: 0x7f00_0000_0000 + uint64(n)*0x20_0200, Size: size,
			Thread: 1 + trace.ThreadID(n%2),
			Tag:    trace.StringID(1 + n%150), Stack: trace.StackID(1 + n%2000), Allocated: allocated, API: 64})
	}
	sizes := make([]uint64, lasting+plan)
	for i := range sizes {
		sizes[i] = uint64(1+rng.IntN(4096)) * 512
	}
	for n := range lasting {
		add(trace.EventAlloc, n, sizes[n])
	}
	for range steps {
		for n := lasting; n < lasting+plan; n++ {
			add(trace.EventAlloc, n, sizes[n])
		}
		for n := lasting + plan - 1; n >= lasting; n-- {
			add(trace.EventFree, n, sizes[n])
		}
	}
	for n := range lasting {
		add(trace.EventFree, n, sizes[n])
	}
	return events
}

func reportRate(b *testing.B, events int) {
	b.ReportMetric(float64(b.N)*float64(events)/1e6/b.Elapsed().Seconds(), "Mevents/s")
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/float64(events), "ns/event")
}

// BenchmarkHeap is the state machine alone.
func BenchmarkHeap(b *testing.B) {
	events := trainingEvents(200)
	h := heap.NewHeap(heap.NoopObserver{}, nil)
	for b.Loop() {
		for i := range events {
			h.Apply(&events[i])
		}
	}
	reportRate(b, len(events))
}

// BenchmarkSummarize is a whole summary with peaks, lifetimes and the grouping by tag, the events being in memory
// already.
func BenchmarkSummarize(b *testing.B) {
	for _, groupings := range [][]string{{"tag"}, {"tag", "library", "api"}, profile.GroupingNames()} {
		name := groupings[0]
		for _, g := range groupings[1:] {
			name += "," + g
		}
		b.Run(name, func(b *testing.B) {
			events := trainingEvents(200)
			for b.Loop() {
				src := &memorySource{events: events}
				fillTables(&src.tables)
				if _, err := Summarize(src, Options{Question: Question{Groupings: groupings}}); err != nil {
					b.Fatal(err)
				}
			}
			reportRate(b, len(events))
		})
	}
}

// BenchmarkSummarizeCategories is a summary by two sets of rules, over tags, sizes and libraries.
func BenchmarkSummarizeCategories(b *testing.B) {
	events := trainingEvents(200)
	first := ruleSet(b, rules.FirstMatch, rule("encoder", text(rules.Tag, "encoder")),
		rule("large", bounds(b, ">= 1MiB")), rule("middle", bounds(b, ">= 64KiB")))
	second := ruleSet(b, rules.FirstMatch, rule("BLAS", text(rules.Library, "cublas")),
		rule("c10", text(rules.Library, "libc10")))
	for b.Loop() {
		src := &memorySource{events: events}
		fillTables(&src.tables)
		if _, err := Summarize(src, Options{Question: Question{Groupings: []string{"a", "b"}, Entries: 20},
			RuleSets: []profile.RuleGrouping{{Name: "a", Rules: first}, {Name: "b", Rules: second}}}); err != nil {
			b.Fatal(err)
		}
	}
	reportRate(b, len(events))
}

// BenchmarkSummarizeSites is what the report asks for: the default groupings and places, of 2000 pairs of call stacks
// with 20 frames each.
func BenchmarkSummarizeSites(b *testing.B) {
	events := trainingEvents(200)
	for i := range events {
		events[i].PyStack = events[i].Stack
	}
	for b.Loop() {
		src := &memorySource{events: events, info: trace.Info{"python.version": "3.11", "python.eval": "900000-900100"}}
		fillTables(&src.tables)
		for n := range trace.StackID(2000) {
			src.tables.AddCode(trace.Code{ID: trace.CodeID(n + 1), Name: "forward", File: "/home/ada/train.py",
				FirstLine: int32(n)})
			native, python := make([]uint64, 20), make([]trace.PyFrame, 20)
			for i := range native {
				native[i] = 1<<20 + uint64(n)*16 + uint64(i) + 1
				python[i].Code = trace.CodeID((int(n)+i)%2000 + 1)
			}
			src.tables.AddStack(trace.Stack{ID: n + 6, Frames: native, End: trace.StackInterpreter})
			src.tables.AddPyStack(trace.PyStack{ID: n + 1, Frames: python})
		}
		if _, err := Summarize(src, Options{Question: Question{Sites: true},
			Symbols: symbol.Options{NoFiles: true}}); err != nil {
			b.Fatal(err)
		}
	}
	reportRate(b, len(events))
}

// TestSteadyStateAllocatesNothing: once the tables have grown to the live set, replaying costs no memory however long
// the trace is.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	events := trainingEvents(3)
	picked, err := profile.PickGroupings(profile.GroupingNames(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var tables trace.Tables
	fillTables(&tables)
	c := newReplayer(&tables, picked, nil, &Options{}, nil)
	replayAll := func() {
		for i := range events {
			c.event(&events[i])
		}
	}
	replayAll()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 5 {
		replayAll()
	}
	runtime.ReadMemStats(&after)
	if n := after.Mallocs - before.Mallocs; n > 20 { // the runtime itself allocates a little now and then
		t.Errorf("%d allocations in %d events", n, 5*len(events))
	}
}

// encodeEvents returns events as a trace file.
func encodeEvents(b testing.TB, events []trace.Event) []byte {
	var file bytes.Buffer
	w, err := trace.NewWriter(&file, trace.WriterOptions{})
	if err != nil {
		b.Fatal(err)
	}
	if err := w.WriteEvents(events); err != nil {
		b.Fatal(err)
	}
	if err := w.Close(trace.End{}); err != nil {
		b.Fatal(err)
	}
	return file.Bytes()
}

// openEvents reads such a file as the command does.
func openEvents(b *testing.B, file []byte) *trace.Reader {
	r, err := trace.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		b.Fatal(err)
	}
	r.DecodeAhead()
	return r
}

// BenchmarkSummarizeFile reads a trace file, as the command does. With a second processor, decoding and replay go on at
// the same time.
func BenchmarkSummarizeFile(b *testing.B) {
	events := trainingEvents(200)
	file := encodeEvents(b, events)
	for b.Loop() {
		if _, err := Summarize(openEvents(b, file), Options{Question: Question{Groupings: []string{"tag"}}}); err !=
			nil {
			b.Fatal(err)
		}
	}
	reportRate(b, len(events))
}

// BenchmarkSummarizeTraining reads it with names and iterations, for which it is read twice: in every step 40 blocks
// are named, as gradients are, before the optimizer's step ends it.
func BenchmarkSummarizeTraining(b *testing.B) {
	var events []trace.Event
	add := func(e trace.Event) {
		e.Seq, e.Time = uint64(len(events)+1), int64(len(events))*5000
		events = append(events, e)
	}
	last := trace.EventAlloc
	for n, e := range trainingEvents(200) {
		if last == trace.EventFree && e.Kind == trace.EventAlloc {
			add(trace.Event{Kind: trace.EventName, Category: trace.CategoryStep, Handle: 1, Name: 1, Thread: 1})
		}
		if last = e.Kind; last == trace.EventFree && n%50 == 0 {
			add(trace.Event{Kind: trace.EventName, Category: trace.CategoryGradient, Handle: e.Addr,
				Name: trace.StringID(1 + n%150), Addr: e.Addr, Size: e.Size, Thread: 1})
		}
		add(e)
	}
	file := encodeEvents(b, events)
	sets := []profile.RuleGrouping{{Name: "category", Rules: madeSet(b)}}
	for b.Loop() {
		s, err := Summarize(openEvents(b, file), Options{Training: true, Ahead: openEvents(b, file), RuleSets: sets,
			Symbols: symbol.Options{NoFiles: true}})
		if err != nil {
			b.Fatal(err)
		}
		if n := len(s.Training.Iterations); n < 199 {
			b.Fatalf("%d iterations", n)
		}
	}
	reportRate(b, len(events))
}
