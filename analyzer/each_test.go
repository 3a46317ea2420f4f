package analyzer

import (
	"math/rand/v2"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// eachOf compares answers that were found in one reading with those of a reading for each.
func eachOf(t *testing.T, name string, open func() trace.Source, list []Options) {
	t.Helper()
	want := make([]string, len(list))
	for i, o := range list {
		if o.Ahead != nil {
			o.Ahead = open()
		}
		s, err := Summarize(open(), o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want[i] = asJSON(t, s)
	}
	if list[0].Ahead != nil {
		list[0].Ahead = open()
	}
	together, err := SummarizeEach(open(), list)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for i, s := range together {
		if got := asJSON(t, s); got != want[i] {
			t.Fatalf("%s, question %d: %s", name, i, difference(got, want[i]))
		}
	}
}

// TestSummarizeEach: what several replays of one reading find is what each finds alone, with every kind of filter, in
// windows, and where names were found by reading ahead.
func TestSummarizeEach(t *testing.T) {
	for seed := range uint64(randomStreams() / 4) {
		rng := rand.New(rand.NewPCG(seed, 31))
		events := withPlaces(randomStream(seed, streamShape{events: 20 + rng.IntN(400), wild: rng.IntN(2) == 0,
			noHandles: rng.IntN(4) == 0, noStacks: rng.IntN(4) == 0}))
		open := func() trace.Source {
			src := &memorySource{events: events}
			fillTables(&src.tables)
			return src
		}
		var list []Options
		for range 1 + rng.IntN(4) {
			o := randomOptions(rng)
			o.At, o.From, o.To = moment.At{}, moment.At{}, moment.At{}
			o.Question, o.Symbols, o.Ahead = Question{Sites: true}, symbol.Options{NoFiles: true}, open()
			if by := profile.GroupingNames()[rng.IntN(3)]; seed%2 == 0 {
				o.OwnerBy, o.OwnerIs = by, func(key string) bool { return len(key)%2 == 0 }
			} else {
				o.Focus, o.Ignore, o.Ahead = nil, nil, nil
			}
			if seed%5 == 0 {
				o.From = must(moment.Parse("1us"))
			}
			list = append(list, o)
		}
		eachOf(t, "a random stream", open, list)
	}
}

// TestSummarizeEachOfTraining does the same for owners of a training, whose names and iterations a first reading finds.
func TestSummarizeEachOfTraining(t *testing.T) {
	for seed := range uint64(8) {
		l := newMadeLoop(seed, seed%3 == 2)
		l.iterate(3)
		open := func() trace.Source { again := *l.src; return &again }
		var list []Options
		for _, by := range []string{"category", "module", "site", "tag"} {
			for parity := range 2 {
				list = append(list, Options{Training: true, Ahead: open(),
					RuleSets: []profile.RuleGrouping{{Name: "category", Rules: madeSet(t)}},
					Symbols:  symbol.Options{NoFiles: true}, OwnerBy: by,
					OwnerIs: func(key string) bool { return len(key)%2 == parity }})
			}
		}
		eachOf(t, "a loop", open, list)
		summaries, err := SummarizeEach(open(), list)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range summaries {
			checkStayed(t, s.Training)
		}
	}
}

// checkStayed: no more of a category stayed than there was at the end, also where an owner's blocks are told late.
func checkStayed(t *testing.T, tr *report.Training) {
	t.Helper()
	for i := range tr.Iterations {
		it := &tr.Iterations[i]
		for c, bytes := range it.Stayed {
			if bytes > it.End[c] {
				t.Errorf("iteration %d: %d bytes of %s stayed, of %d", i, bytes, tr.Categories[c], it.End[c])
			}
		}
	}
}

// TestSummarizeEachRefuses: an error of one question is that of all, and questions of which some need names that follow
// are not mixed with others.
func TestSummarizeEachRefuses(t *testing.T) {
	src := func() trace.Source {
		s := &memorySource{events: randomStream(1, streamShape{events: 100})}
		fillTables(&s.tables)
		return s
	}
	if _, err := SummarizeEach(src(), []Options{{}, {Question: Question{Groupings: []string{"nothing"}}}}); err == nil {
		t.Error("an unknown grouping")
	}
	owner := Options{OwnerBy: "tag", OwnerIs: func(string) bool { return true }, Ahead: src()}
	if _, err := SummarizeEach(src(), []Options{owner, {}}); err == nil {
		t.Error("one question needs the trace once more, the other does not")
	}
}
