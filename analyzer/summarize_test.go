package analyzer

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/trace"
)

var streams = flag.Int("streams", 100, "random streams to compare with the oracle")

// randomStreams returns how many streams to compare: a third with -short, as in make test and under the race detector,
// since all of them are compared without it.
func randomStreams() int {
	if testing.Short() {
		return *streams / 3
	}
	return *streams
}

// asJSON is what summaries are compared by: every number that a report could print.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// difference returns the lines around the first one that differs.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			from := max(0, i-8)
			return fmt.Sprintf("line %d\ngot:\n%s\nwant:\n%s", i+1, strings.Join(g[from:min(len(g), i+6)], "\n"),
				strings.Join(w[from:min(len(w), i+6)], "\n"))
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// randomOptions turns filters, groupings and moments on and off.
func randomOptions(rng *rand.Rand) Options {
	o := Options{Question: Question{Groupings: profile.GroupingNames()}}
	rng.Shuffle(len(o.Groupings), func(i, j int) { o.Groupings[i], o.Groupings[j] = o.Groupings[j], o.Groupings[i] })
	o.Groupings = o.Groupings[:1+rng.IntN(len(o.Groupings))]
	if rng.IntN(4) == 0 {
		o.Devices = [][]int16{{0}, {1}, {0, 1}, {-1}}[rng.IntN(4)]
	}
	if rng.IntN(6) == 0 {
		o.Tag = []string{"model", "model.encoder", "optimizer", "mod"}[rng.IntN(4)]
	}
	if rng.IntN(6) == 0 {
		o.Library = []string{"cublas", "c10", "unknown"}[rng.IntN(3)]
	}
	if rng.IntN(6) == 0 {
		o.Focus = regexp.MustCompile([]string{"encoder", "^cudaMalloc$", "python|cublas"}[rng.IntN(3)])
	}
	if rng.IntN(6) == 0 {
		o.Ignore = regexp.MustCompile([]string{"optim", "autograd", "cuMem"}[rng.IntN(3)])
	}
	if rng.IntN(2) == 0 {
		o.At = must(moment.Parse([]string{"peak", "exit", "mark:loaded", "mark:stats", "step:3", "0s", "20s",
			"200h"}[rng.IntN(8)]))
	}
	return o
}

// TestSummaryAgreesWithOracle compares every number of the summary with a slow and obvious replay, on random histories
// with everything that may happen.
func TestSummaryAgreesWithOracle(t *testing.T) {
	for seed := range uint64(randomStreams()) {
		rng := rand.New(rand.NewPCG(seed, 7))
		shape := streamShape{events: 20 + rng.IntN(700), wild: rng.IntN(2) == 0, noHandles: rng.IntN(4) == 0,
			noStacks: rng.IntN(4) == 0}
		if rng.IntN(3) > 0 {
			shape.delayed = func(trace.Event) bool { return true }
		}
		src := &memorySource{events: withPlaces(randomStream(seed, shape)), batch: 1 + rng.IntN(50)}
		fillTables(&src.tables)
		opts := randomOptions(rng)
		got, err := summarizeKeeping(src, opts, []int{0, 1, 10}[seed%3])
		if opts.At.Kind == moment.Mark || opts.At.Kind == moment.Step {
			if err != nil && strings.Contains(err.Error(), "the trace has no") {
				continue // a short stream without that moment
			}
		}
		if err != nil && opts.At.Kind == moment.Time && strings.Contains(err.Error(), "after the end of the run") {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want := expected(src, opts)
		// What is no number, and what the other tests look at.
		want.Process, want.Versions, want.By, want.Notes, want.Filter = got.Process, got.Versions, got.By, got.Notes,
			got.Filter
		want.OOM, want.Trend, want.OtherTrends, want.Heights = got.OOM, got.Trend, got.OtherTrends, got.Heights
		want.Health.Complete = got.Health.Complete
		want.Health.Stacks, want.Health.SymbolProblems = got.Health.Stacks, got.Health.SymbolProblems
		withoutBounds(got)
		if g, w := asJSON(t, got), asJSON(t, want); g != w {
			t.Fatalf("seed %d, options %+v: %s", seed, opts, difference(g, w))
		}
	}
}

// summarizeKeeping summarises as Summarize does, but retires idle cells when more than keep are in use, 0 for the usual
// number.
func summarizeKeeping(src trace.Source, opts Options, keep int) (*report.Summary, error) {
	p, err := NewProfile(src, opts)
	if err != nil {
		return nil, err
	}
	for _, d := range p.replayer.accounts.details {
		if d != nil {
			d.Cells.Keep = keep
		}
	}
	return soFar(p)
}

// TestIdleCellsAreRetired: a program that names every iteration makes ever new origins, and memory stays bounded by
// what is live.
func TestIdleCellsAreRetired(t *testing.T) {
	const iterations = 4 * profile.CellsKept
	src := &memorySource{}
	fillTables(&src.tables)
	for n := range uint64(iterations) {
		e := trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice,
			Addr: 0x7f0000000000, Size: 512, Tag: trace.StringID(100 + n)}
		free := e
		free.Kind = trace.EventFree
		e.Seq, free.Seq = 2*n+1, 2*n+2
		src.events = append(src.events, e, free)
	}
	p, err := NewProfile(src, Options{Question: Question{Groupings: []string{"api"}}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := soFar(p)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.replayer.accounts.details[heap.AccountFramework].Cells.List); n > profile.CellsKept+1 {
		t.Errorf("%d cells for one live block at a time, want at most %d", n, profile.CellsKept)
	}
	if rows := s.Group("api", "framework").Rows; len(rows) != 1 || rows[0].AllocCount != iterations ||
		rows[0].PeakBytes != 512 {
		t.Errorf("rows %+v, want one of %d allocations", rows, iterations)
	}
}

// TestRowsAddUp checks the promise that every table divides the whole.
func TestRowsAddUp(t *testing.T) {
	for seed := range uint64(40) {
		src := &memorySource{
			events: randomStream(seed, streamShape{events: 500, wild: true, delayed: func(trace.Event) bool {
				return true
			}})}
		fillTables(&src.tables)
		s, err := Summarize(src, Options{Question: Question{Groupings: profile.GroupingNames()}})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range s.Groups {
			level := map[string]report.Level{"driver": s.Driver, "framework": s.Framework}[g.Level]
			var sum report.Row
			for _, r := range g.Rows {
				sum.PeakBytes += r.PeakBytes
				sum.LiveBytes += r.LiveBytes
				sum.AllocCount += r.AllocCount
				sum.FreeCount += r.FreeCount
				sum.AllocBytes += r.AllocBytes
			}
			if want := (report.Row{PeakBytes: level.PeakBytes, LiveBytes: level.LiveBytes, AllocCount: level.AllocCount,
				FreeCount:  level.FreeCount,
				AllocBytes: level.AllocBytes}); sum != want {
				t.Errorf("seed %d: rows of %s by %s add up to %+v, want %+v", seed, g.Level, g.By, sum, want)
			}
		}
	}
}

// TestLateFreesHeal: whatever the order in which frees reach the file, what is live in the end is the same.
func TestLateFreesHeal(t *testing.T) {
	late := map[string]func(trace.Event) bool{
		"frees": func(e trace.Event) bool { return e.Kind == trace.EventFree || e.Kind == trace.EventUnmap },
		// A module's variable that is asked for twice is one block; which of the two came first shows only in their
		// order.
		"allocs": func(e trace.Event) bool { return e.Kind == trace.EventAlloc && e.Mem != cuda.MemoryModule },
	}
	for name, delayed := range late {
		for seed := range uint64(100) {
			var live [2]string
			for i, may := range []func(trace.Event) bool{nil, delayed} {
				src := &memorySource{
					events: randomStream(seed, streamShape{events: 400, delayed: may, noHandles: name == "allocs"})}
				fillTables(&src.tables)
				s, err := Summarize(src, Options{Question: Question{Groupings: []string{"tag"}}})
				if err != nil {
					t.Fatal(err)
				}
				if s.Health.UnmatchedFrees != 0 {
					t.Errorf("late %s, seed %d: %d frees stayed unmatched", name, seed, s.Health.UnmatchedFrees)
				}
				live[i] = fmt.Sprint(s.Driver.LiveBytes, s.Framework.LiveBytes, s.Driver.AllocCount-s.Driver.FreeCount,
					s.Driver.AllocCount, s.Framework.AllocBytes)
			}
			if live[0] != live[1] {
				t.Errorf("late %s, seed %d: %s, want %s", name, seed, live[1], live[0])
			}
		}
	}
}

type failingSource struct{ memorySource }

func (*failingSource) ReadBatch() ([]trace.Event, error) { return nil, errors.New("disk on fire") }

func TestSummarizeErrors(t *testing.T) {
	if _, err := Summarize(&memorySource{}, Options{Question: Question{Groupings: []string{"colour"}}}); err == nil ||
		!strings.Contains(err.Error(), "choose from tag, name, module, phase, api, library, device, thread") {
		t.Errorf("unknown grouping: %v", err)
	}
	if _, err := Summarize(&failingSource{}, Options{}); err == nil || err.Error() != "read events: disk on fire" {
		t.Errorf("failed read: %v", err)
	}
	src := &memorySource{events: []trace.Event{{Kind: trace.EventMark, Name: 20, Seq: 1}}}
	fillTables(&src.tables)
	if _, err := Summarize(src, Options{Question: Question{At: must(moment.Parse("mark:stats"))}}); err == nil ||
		err.Error() != `the trace has no mark "stats"; it has "loaded"` {
		t.Errorf("missing mark: %v", err)
	}
	if _, err := Summarize(&memorySource{}, Options{Question: Question{At: must(moment.Parse("step:3"))}}); err ==
		nil || !strings.Contains(err.Error(), "no step 3") {
		t.Errorf("missing step: %v", err)
	}
	for _, text := range []string{"never", "mark:", "step:x", "-1s"} {
		if _, err := moment.Parse(text); err == nil {
			t.Errorf("Parse(%q) succeeded", text)
		}
	}
}

func TestProgressCountsBytes(t *testing.T) {
	src := &memorySource{events: randomStream(1, streamShape{events: 100}), batch: 10,
		health: trace.Health{Bytes: 4321}}
	fillTables(&src.tables)
	calls, last := 0, int64(0)
	if _, err := Summarize(src, Options{Progress: func(n int64) { calls++; last = n }}); err != nil {
		t.Fatal(err)
	}
	if calls < 10 || last != 4321 {
		t.Errorf("%d calls, last %d; want one per batch and 4321", calls, last)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A block whose free was in flight when the program ended, and whose address another thread had got meanwhile, made a
// whole run incomplete; so did one whose free came late.
func TestCompleteWithCallsInFlight(t *testing.T) {
	displaced := []trace.Event{
		{Kind: trace.EventAlloc, Seq: 1, Level: cuda.LevelDriver, Mem: cuda.MemoryDevice, Addr: 0x1000, Size: 10},
		{Kind: trace.EventAlloc, Seq: 3, Level: cuda.LevelDriver, Mem: cuda.MemoryDevice, Addr: 0x1000, Size: 20},
	}
	ended := slices.Clone(displaced)
	ended[1].Time = 6
	late := trace.Event{Kind: trace.EventFree, Seq: 2, Level: cuda.LevelDriver, Mem: cuda.MemoryDevice, Addr: 0x1000,
		Flags: trace.FlagLate}
	for _, c := range []struct {
		what     string
		events   []trace.Event
		inFlight uint64
		want     bool
	}{
		{"its free is missing", displaced, 0, false},
		{"its free is in flight", displaced, 1, true},
		{"its free came late", append(slices.Clone(displaced), late), 0, true},
		{"its free came when recording had ended", ended, 0, true},
	} {
		s, err := Summarize(&memorySource{events: c.events, end: &trace.End{Time: 5},
			health: trace.Health{InFlight: c.inFlight}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Health.Complete != c.want || s.Health.DisplacedBlocks != 1 || s.Driver.LiveBytes != 20 {
			t.Errorf("%s: complete %v, want %v; %+v", c.what, s.Health.Complete, c.want, s.Health)
		}
	}
}
