package analyzer

import (
	"strings"
	"testing"

	"memtrace/analyzer/heap"
	"memtrace/analyzer/report"
	"memtrace/trace"
)

// nameMark is the mark that the windows of these tests begin at.
const nameMark trace.StringID = 4711

// markAt puts a mark into a stream.
func markAt(events []trace.Event, at int) []trace.Event {
	mark := trace.Event{Kind: trace.EventMark, Name: nameMark, Time: events[at].Time}
	return append(append(append([]trace.Event(nil), events[:at]...), mark), events[at:]...)
}

func sourceOf(t *testing.T, events []trace.Event) *memorySource {
	t.Helper()
	src := &memorySource{events: events, batch: 97}
	fillTables(&src.tables)
	src.tables.AddString(nameMark, "window")
	return src
}

func parseAt(t *testing.T, text string) At {
	t.Helper()
	at, err := ParseAt(text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestSinceRandom: at the end the same is live, and the peak is the highest that the plain replay had from the moment
// on, by its own totals after each event.
func TestSinceRandom(t *testing.T) {
	for seed := range uint64(200) {
		events := randomStream(seed, streamShape{events: 600})
		at := int(seed*37) % len(events)
		marked := markAt(events, at)

		plain, err := NewLive(sourceOf(t, nil), Options{})
		if err != nil {
			t.Fatal(err)
		}
		accounts := []heap.Account{heap.AccountDriver, heap.AccountFramework}
		want := make([]uint64, len(accounts))
		for i := range marked {
			plain.collector.event(&marked[i])
			for n, a := range accounts {
				if i >= at {
					want[n] = max(want[n], plain.collector.details[a].Total.Current)
				}
			}
		}
		s, err := Summarize(sourceOf(t, marked), Options{Groupings: []string{"api", "library"}, Since: parseAt(t, "mark:window")})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(s.Filter) != 1 || s.Filter[0] != "peaks since mark:window" {
			t.Fatalf("%q", s.Filter)
		}
		for n, a := range accounts {
			got := s.Driver
			if a == heap.AccountFramework {
				got = s.Framework
			}
			if live := plain.collector.details[a].Total.Current; got.LiveBytes != live {
				t.Errorf("seed %d, %s: %d live at the end, %d in the plain replay", seed, a, got.LiveBytes, live)
			}
			if got.PeakBytes != want[n] {
				t.Errorf("seed %d, %s: peak %d, %d in the plain replay", seed, a, got.PeakBytes, want[n])
			}
			for _, group := range s.Groups {
				if group.Level == a.String() && rowsPeak(group) != want[n] {
					t.Errorf("seed %d, %s: rows by %s add up to %d, not to the peak %d", seed, a, group.By, rowsPeak(group), want[n])
				}
			}
		}
	}
}

func rowsPeak(g report.Group) (sum uint64) {
	for _, r := range g.Rows {
		sum += r.PeakBytes
	}
	return sum
}

func TestSinceRefuses(t *testing.T) {
	for text, want := range map[string]string{"mark:other": "never came", "step:7": "never came", "peak": "name a moment such as mark:NAME", "exit": "name a moment", "oom": "name a moment"} {
		_, err := Summarize(sourceOf(t, randomStream(1, streamShape{events: 50})), Options{Since: parseAt(t, text)})
		if err == nil || !strings.Contains(err.Error(), "--since "+text+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
