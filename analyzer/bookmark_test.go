package analyzer

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"memtrace/internal/profile"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// looking is a look at a trace that grows.
type looking struct {
	*Profile
	src *countedSource
	t   *testing.T
}

// look begins to read the first bytes of a trace.
func look(t *testing.T, file []byte, o Options) *looking {
	t.Helper()
	o.Symbols = symbol.Options{NoFiles: true}
	src := &countedSource{Reader: openStory(t, file)}
	p, err := NewProfile(src, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return &looking{p, src, t}
}

// answer reads on and answers the question.
func (l *looking) answer(q Question) string {
	l.t.Helper()
	if err := l.Update(); err != nil {
		l.t.Fatal(err)
	}
	s, err := l.Report(q)
	if err != nil {
		l.t.Fatal(err)
	}
	return asJSON(l.t, s)
}

// written returns a bookmark as it comes back from its file.
func written(t *testing.T, f *trace.Keyframe) *trace.Keyframe {
	t.Helper()
	var file bytes.Buffer
	if err := trace.WriteBookmark(&file, "test", f); err != nil {
		t.Fatal(err)
	}
	if _, err := trace.ReadBookmark(bytes.NewReader(file.Bytes()), int64(file.Len()), "other"); !errors.Is(err,
		trace.ErrNoBookmark) {
		t.Errorf("another version's bookmark: %v", err)
	}
	back, err := trace.ReadBookmark(bytes.NewReader(file.Bytes()), int64(file.Len()), "test")
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// withWord adds what devices and the allocator say now and then: samples, blocks that wait, completed events.
func withWord(events []trace.Event, rng *rand.Rand) (list []trace.Event) {
	for _, e := range events {
		e.Seq *= 2
		list = append(list, e)
		said := trace.Event{Seq: e.Seq + 1, Time: e.Time, Thread: e.Thread, Device: int16(rng.IntN(2)),
			Handle: uint64(1 + rng.IntN(8)), Size: uint64(512 * (1 + rng.IntN(40)))}
		switch rng.IntN(40) {
		case 0:
			said.Kind, said.Allocated, said.Count = trace.EventSample, said.Size/2, said.Size/4
			said.Flags = trace.Flags(rng.IntN(2)) * trace.FlagUnsettled
		case 1, 2:
			said.Kind, said.Addr = trace.EventWait, uint64(1+rng.IntN(20))<<9
		case 3:
			said.Kind = trace.EventComplete
		default:
			continue
		}
		list = append(list, said)
	}
	return list
}

// sameBookmark compares bookmarks number by number.
func sameBookmark(t *testing.T, seed uint64, got, want *trace.Keyframe) {
	t.Helper()
	if got == nil || !slices.Equal(got.Live, want.Live) || len(got.State.Names()) != len(want.State.Names()) {
		t.Fatalf("seed %d: the bookmark comes back with other blocks or tables", seed)
	}
	for _, name := range want.State.Names() {
		if a, b := numbersOf(got.State.Table(name)), numbersOf(want.State.Table(name)); !slices.Equal(a, b) {
			t.Fatalf("seed %d: table %s has\n%v, want\n%v", seed, name, a, b)
		}
	}
}

// TestBookmarkComesBack: what a replay knows that went on from a bookmark, where nothing follows, is what the
// bookmark holds.
func TestBookmarkComesBack(t *testing.T) {
	t.Parallel()
	question := Question{At: parseAt(t, "exit"), Groupings: []string{"tag"}}
	o := Options{Question: question, RuleSets: []profile.RuleGrouping{{Name: "category", Rules: madeSet(t)}}}
	made := 0
	for seed := range uint64(randomStreams() / 4) {
		rng := rand.New(rand.NewPCG(seed, 80))
		file := traceOf(t, withWord(storyOf(seed, rng), rng), rng)
		file = file[:len(file)/2+rng.IntN(len(file)/2)]
		begun := look(t, file, o)
		begun.answer(question)
		f := begun.Bookmark()
		if f == nil {
			continue
		}
		resumed := look(t, file, o)
		if err := errors.Join(resumed.GoOn(written(t, f)), resumed.Update()); err != nil {
			t.Fatal(err)
		}
		sameBookmark(t, seed, resumed.Bookmark(), written(t, f))
		made++
	}
	if made < randomStreams()/10 {
		t.Errorf("%d bookmarks", made)
	}
}

// TestGoOnFromBookmarks: a replay that goes on from a bookmark says the same, byte for byte, as one that began at
// the beginning, wherever the trace was cut when the bookmark was made, and as often as that is repeated; and it
// reads only the events behind the bookmark.
func TestGoOnFromBookmarks(t *testing.T) {
	t.Parallel()
	question := Question{At: parseAt(t, "exit"), Groupings: profile.GroupingNames(), ByDevice: true, Sites: true}
	o := Options{Question: question, RuleSets: []profile.RuleGrouping{{Name: "category", Rules: madeSet(t)}}}
	var made, refused int
	for seed := range uint64(randomStreams() / 3) {
		rng := rand.New(rand.NewPCG(seed, 79))
		file := traceOf(t, withWord(storyOf(seed, rng), rng), rng)
		cuts := []int{len(file)}
		for range 3 {
			cuts = append(cuts, rng.IntN(len(file)))
		}
		slices.Sort(cuts)
		begun := look(t, file[:max(cuts[0], 16)], o)
		begun.answer(question)
		for _, cut := range cuts[1:] {
			f := begun.Bookmark()
			if f == nil {
				refused++
				break
			}
			resumed := look(t, file[:cut], o)
			if err := resumed.GoOn(written(t, f)); err != nil {
				t.Fatal(err)
			}
			made++
			read, before := resumed.answer(question), begun.src.events
			whole := look(t, file[:cut], o)
			if want := whole.answer(question); read != want {
				t.Fatalf("seed %d, cuts %v: %s", seed, cuts, difference(read, want))
			}
			if resumed.src.events != whole.src.events-before {
				t.Fatalf("seed %d: %d of %d events were read behind %d", seed, resumed.src.events, whole.src.events,
					before)
			}
			resumed.src.events += before
			begun = resumed
		}
	}
	t.Logf("%d bookmarks, %d could not be made", made, refused)
	if made < randomStreams()/4 {
		t.Errorf("%d bookmarks, %d could not be made", made, refused)
	}
}
