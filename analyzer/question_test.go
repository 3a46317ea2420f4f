package analyzer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/internal/rules"
	"memtrace/internal/symbol"
	"memtrace/internal/textform"
	"memtrace/trace"
)

// askedTrace is a trace that is replayed once for many questions, and once for each of them.
type askedTrace struct {
	name string
	open func() trace.Source
	opts Options // of the one replay; Sites is on, since what is told of OOM events depends on it
	keep int     // cells before idle ones are retired
}

// options are those of a replay of its own, with the question known beforehand.
func (a *askedTrace) options(q Question) Options {
	o := a.opts
	if o.Ahead != nil {
		o.Ahead = a.open()
	}
	o.Question = q
	return o
}

func (a *askedTrace) profile(t *testing.T, o Options) *Profile {
	t.Helper()
	p, err := NewProfile(a.open(), o)
	if err != nil {
		t.Fatalf("%s: %v", a.name, err)
	}
	for _, d := range p.replayer.accounts.details {
		if d != nil {
			d.Cells.Keep = a.keep
		}
	}
	if err := p.Update(); err != nil {
		t.Fatalf("%s: %v", a.name, err)
	}
	return p
}

// answers are all that a question is answered with, or the error.
func answers(t *testing.T, p *Profile, q Question) string {
	t.Helper()
	s, err := p.Report(q)
	if err != nil {
		return err.Error()
	}
	named := q.Sites || len(s.OOM.Events) == 0 // whether OOM events have places is a matter of the replay
	if !named {
		s.OOM.Events, s.Limits, s.Notes, s.Health.SymbolProblems = nil, nil, nil, nil
	}
	list := []any{s, s.Parts, s.Limits, s.Asked}
	for _, level := range []string{"", "driver", "framework"} {
		set, err := p.Stacks(q, level)
		if err != nil {
			return err.Error()
		}
		if !named {
			set.Notes, set.Problems = nil, nil
		}
		list = append(list, set)
	}
	return asJSON(t, list)
}

// questionsAbout are one for every grouping, and some of every other kind.
func questionsAbout(rng *rand.Rand, o *Options, moments []string) []Question {
	names := profile.GroupingNames()
	for _, g := range o.RuleSets {
		names = append(names, g.Name)
	}
	list := []Question{{}, {Sites: true}, {FullStacks: true, Sites: true, Entries: 2},
		{Groupings: names, Expected: 1 << 30}}
	for _, name := range names {
		list = append(list, Question{Groupings: []string{name}, Sites: rng.IntN(2) == 0, Entries: rng.IntN(3),
			ByDevice: rng.IntN(2) == 0})
	}
	for range 5 {
		pair := []string{names[rng.IntN(len(names))], names[rng.IntN(len(names))]}
		if pair[0] != pair[1] {
			list = append(list, Question{Groupings: pair[:1], Cross: pair, Sites: true})
		}
	}
	for i := range list {
		list[i].At = must(moment.Parse(moments[rng.IntN(len(moments))]))
	}
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// check asks one profile everything, in two orders, and compares with replays that were told.
func (a *askedTrace) check(t *testing.T, rng *rand.Rand) {
	t.Helper()
	moments := []string{"", "peak", "exit"}
	if !a.opts.At.IsZero() {
		moments = append(moments, a.opts.At.String())
	}
	p := a.profile(t, a.options(Question{Sites: true, At: a.opts.At}))
	defer p.Close()
	list := questionsAbout(rng, &a.opts, moments)
	want := make([]string, len(list))
	for i, q := range list {
		alone := a.profile(t, a.options(q))
		want[i] = answers(t, alone, q)
		alone.Close()
	}
	for _, turn := range []string{"at first", "afterwards"} {
		for i, q := range list {
			if got := answers(t, p, q); got != want[i] {
				t.Fatalf("%s, %s, %+v: %s", a.name, turn, q, difference(got, want[i]))
			}
		}
		slices.Reverse(list)
		slices.Reverse(want)
	}
}

// TestQuestionsAfterwards: whatever is asked of a Profile, and after whatever else, the answer is that of a replay that
// knew the question: on random histories, also where cells are retired and within windows.
func TestQuestionsAfterwards(t *testing.T) {
	all := oneOfWords(rules.Level, "driver", "framework")
	sets := []profile.RuleGrouping{{Name: "stack", Rules: ruleSet(t, rules.FirstMatch, rule("{tag}", all))},
		{Name: "made", Rules: ruleSet(t, rules.MultiMatch, rule("large", bounds(t, ">= 1MiB")),
			rule("{library}", all))}}
	for seed := range uint64(randomStreams() / 4) {
		rng := rand.New(rand.NewPCG(seed, 16))
		shape := streamShape{events: 20 + rng.IntN(400), wild: rng.IntN(2) == 0, noHandles: rng.IntN(4) == 0,
			noStacks: rng.IntN(4) == 0}
		events := withPlaces(randomStream(seed, shape))
		// files that are not there are problems of those who ask for names; a replay asks when memory runs out
		withFiles := seed%7 == 0
		if withFiles {
			events = slices.DeleteFunc(events, func(e trace.Event) bool {
				return e.Status != 0 || e.Kind == trace.EventOOM
			})
		}
		a := &askedTrace{name: fmt.Sprintf("seed %d", seed), keep: []int{0, 1, 10}[seed%3], opts: randomOptions(rng)}
		a.open = func() trace.Source {
			src := &memorySource{events: events}
			fillTables(&src.tables)
			return src
		}
		a.opts.Question, a.opts.RuleSets, a.opts.Symbols = Question{At: a.opts.At}, sets,
			symbol.Options{NoFiles: !withFiles}
		if seed%5 == 0 {
			a.opts.From, a.opts.Ahead = must(moment.Parse("1us")), a.open()
		}
		if seed%2 == 0 {
			a.opts.Focus, a.opts.Ignore = nil, nil
		}
		a.check(t, rng)
	}
}

// TestQuestionsAboutTraining does the same where a first reading finds names, and for traces whose reports are known.
func TestQuestionsAboutTraining(t *testing.T) {
	for seed := range uint64(8) {
		l := newMadeLoop(seed, seed%3 == 2)
		l.iterate(3)
		a := &askedTrace{name: fmt.Sprintf("loop %d", seed), keep: []int{0, 4}[seed%2]}
		a.open = func() trace.Source { again := *l.src; return &again }
		a.opts = Options{Training: true, Ahead: a.open(),
			RuleSets: []profile.RuleGrouping{{Name: "category", Rules: madeSet(t)}},
			Symbols:  symbol.Options{NoFiles: true}}
		a.check(t, rand.New(rand.NewPCG(seed, 17)))
	}
}

func TestQuestionsAboutKnownTraces(t *testing.T) {
	paths, err := filepath.Glob("../internal/render/testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d traces, %v", len(paths), err)
	}
	asked := 0
	for n, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if f.Name != "trace" {
				continue
			}
			var file bytes.Buffer
			if err := textform.Encode(&file, strings.NewReader(string(f.Data))); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			a := &askedTrace{name: path, opts: Options{Symbols: symbol.Options{NoFiles: true},
				RuleSets: []profile.RuleGrouping{{Name: "category", Rules: madeSet(t)}}}}
			a.open = func() trace.Source {
				return must(trace.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len())))
			}
			a.opts.Ahead, a.opts.Training = a.open(), true
			a.check(t, rand.New(rand.NewPCG(uint64(n), 18)))
			asked++
		}
	}
	if asked < 15 {
		t.Errorf("%d traces", asked)
	}
}

// TestMomentsThatWereNotKept: the state at a moment that the replay was not told of is not guessed.
func TestMomentsThatWereNotKept(t *testing.T) {
	src := &memorySource{events: randomStream(1, streamShape{events: 100})}
	fillTables(&src.tables)
	p, err := Replay(src, Options{Question: Question{At: must(moment.Parse("step:3"))}})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"mark:loaded", "step:4", "1s"} {
		if _, err := p.Report(Question{At: must(moment.Parse(at))}); err == nil ||
			!strings.Contains(err.Error(), "was not kept") {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// TestPartsAreTheDevices: what a summary says of each device is what one of that device alone says of the same moment.
func TestPartsAreTheDevices(t *testing.T) {
	sets := []profile.RuleGrouping{
		{Name: "made", Rules: ruleSet(t, rules.FirstMatch,
			rule("{tag}", oneOfWords(rules.Level, "driver", "framework")))}}
	compared := 0
	for seed := range uint64(60) {
		open := func() trace.Source {
			src := &memorySource{events: randomStream(seed, streamShape{events: 400, wild: seed%2 == 0})}
			fillTables(&src.tables)
			return src
		}
		opts := Options{Question: Question{At: must(moment.Parse("exit")), ByDevice: true,
			Groupings: []string{"tag", "api", "made"}, Entries: 3}, RuleSets: sets}
		s, err := Summarize(open(), opts)
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Parts {
			part := &s.Parts[i]
			opts.Devices = []int16{part.Index}
			alone, err := Summarize(open(), opts)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := asJSON(t, part.Ledgers), asJSON(t, alone.Ledgers); got != want {
				t.Fatalf("seed %d, device %d: %s", seed, part.Index, difference(got, want))
			}
			for i := range alone.Categories {
				alone.Categories[i].Untrackable = nil
			}
			if got, want := asJSON(t, part.Categories), asJSON(t, alone.Categories); got != want {
				t.Fatalf("seed %d, device %d: %s", seed, part.Index, difference(got, want))
			}
			if d := s.Devices[slices.IndexFunc(s.Devices,
				func(d report.Device) bool {
					return d.Index == part.Index
				})]; asJSON(t, []report.Level{d.Driver, d.Framework}) !=
				asJSON(t, []report.Level{alone.Driver, alone.Framework}) {
				t.Fatalf("seed %d, device %d: %+v and %+v, want %+v and %+v", seed, part.Index, d.Driver, d.Framework,
					alone.Driver, alone.Framework)
			}
			compared++
		}
	}
	if compared < 60 {
		t.Errorf("%d parts", compared)
	}
}

// TestPhasesOfManyThreads: a program with ever new threads makes no new phases, so that counting retired cells by phase
// costs no more than its call stacks.
func TestPhasesOfManyThreads(t *testing.T) {
	src := &memorySource{}
	fillTables(&src.tables)
	const threads = 1000
	for n := range uint64(threads) {
		e := trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice,
			Addr: 0x7f0000000000, Size: 512, Thread: trace.ThreadID(100 + n), Seq: 2*n + 1}
		src.events = append(src.events, e)
		e.Kind, e.Seq = trace.EventFree, 2*n+2
		src.events = append(src.events, e)
	}
	a := &askedTrace{open: func() trace.Source { return src }, keep: 10}
	p := a.profile(t, Options{})
	phases := p.replayer.accounts.details[heap.AccountFramework].Cells.Retired(profile.FindGrouping("phase"))
	if counts, n := p.replayer.accounts.details[heap.AccountFramework].Cells.Retired(profile.FindGrouping("thread")),
		len(phases); n != 1 || len(counts) < threads/2 {
		t.Errorf("%d phases of retired cells, want 1; %d threads", n, len(counts))
	}
}
