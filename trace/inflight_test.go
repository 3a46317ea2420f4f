package trace

import (
	"math/rand/v2"
	"slices"
	"testing"

	"memtrace/internal/section"
)

// A program that ended while other threads were inside frees was called incomplete, and one that was killed so could be
// called truncated: the numbers of those calls, which no event will ever have, were gaps like those of lost records.
func TestCallsInFlightAreNoGaps(t *testing.T) {
	seen := func(numbers ...uint64) *section.SeqSet {
		var s section.SeqSet
		for _, n := range numbers {
			s.Add(n)
		}
		return &s
	}
	const top = 1<<64 - 1
	for _, c := range []struct {
		what           string
		set            *section.SeqSet
		drawn          Drawn
		gaps, inFlight uint64
	}{
		{"nothing", seen(), Drawn{}, 0, 0},
		{"whole", seen(1, 2, 3), Drawn{Last: 3}, 0, 0},
		{"a gap that nothing explains", seen(1, 3), Drawn{Last: 3}, 1, 0},
		{"one call, one number", seen(1, 3), Drawn{Last: 3, InFlight: []uint64{2}}, 0, 1},
		{"its lowest number may be lower than its own", seen(1, 2, 4), Drawn{Last: 4, InFlight: []uint64{2}}, 0, 1},
		{"a number below its lowest is not its own", seen(1, 3, 4), Drawn{Last: 4, InFlight: []uint64{3}}, 1, 0},
		{"a call explains two numbers, not three", seen(1, 5), Drawn{Last: 5, InFlight: []uint64{2}}, 1, 2},
		{"the last number drawn is its own", seen(1, 2), Drawn{Last: 3, InFlight: []uint64{3}}, 0, 1},
		{"what was drawn last is missing", seen(1, 2), Drawn{Last: 9}, 7, 0},
		{"everything is missing", seen(), Drawn{Last: 2, InFlight: []uint64{2}}, 1, 1},
		{"calls in any order, the later one is not spent on what only the earlier explains", seen(3, 5, 8),
			Drawn{Last: 8, InFlight: []uint64{6, 1}}, 1, 4},
		{"a recorder that did not say", seen(2), Drawn{}, 1, 0},
		{"the highest number there is", seen(1, top), Drawn{Last: top, InFlight: []uint64{1}}, top - 4, 2},
		{"number 0 is none", seen(0, 2), Drawn{Last: 2, InFlight: []uint64{1}}, 0, 1},
	} {
		if gaps, inFlight := c.drawn.Missing(c.set); gaps != c.gaps || inFlight != c.inFlight {
			t.Errorf("%s: %d gaps, %d in flight, want %d and %d", c.what, gaps, inFlight, c.gaps, c.inFlight)
		}
	}
}

// As many numbers are explained as any way of giving them to the calls could explain.
func TestMissingExplainsMost(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var s section.SeqSet
		d := Drawn{Last: random.Uint64N(14)}
		for range random.IntN(8) {
			s.Add(1 + random.Uint64N(12))
		}
		for range random.IntN(4) {
			d.InFlight = append(d.InFlight, 1+random.Uint64N(14))
		}
		var missing []uint64
		top, _ := s.Max()
		for n := uint64(1); n <= max(top, d.Last); n++ {
			if !s.Contains(n) {
				missing = append(missing, n)
			}
		}
		room := slices.Concat(d.InFlight, d.InFlight) // two numbers each
		want := uint64(mostPairs(missing, room))
		if gaps, inFlight := d.Missing(&s); inFlight != want || gaps != uint64(len(missing))-want {
			t.Fatalf("missing %v, calls %v: %d gaps and %d in flight, want %d in flight", missing, d.InFlight, gaps,
				inFlight, want)
		}
	}
}

// mostPairs tries every way of giving numbers to calls.
func mostPairs(missing, room []uint64) int {
	if len(missing) == 0 {
		return 0
	}
	most := mostPairs(missing[1:], room)
	tried := map[uint64]bool{}
	for i, bound := range room {
		if bound <= missing[0] && !tried[bound] {
			tried[bound] = true
			most = max(most, 1+mostPairs(missing[1:], slices.Concat(room[:i], room[i+1:])))
		}
	}
	return most
}

// The recorder's numbers survive the round trip through the facts about the run; nonsense is rejected.
func TestDrawnInfo(t *testing.T) {
	d := Drawn{Last: 7, InFlight: []uint64{5, 3}}
	info := d.Info()
	if got := drawnFrom(info); got.Last != 7 || !slices.Equal(got.InFlight, []uint64{3, 5}) {
		t.Errorf("%+v became %+v by way of %v", d, got, info)
	}
	if _, there := (Drawn{Last: 1}).Info()[inFlightKey]; there {
		t.Error("a fact about no calls")
	}
	if got := drawnFrom(Info{numbersKey: "-1", inFlightKey: "4 x 5"}); got.Last != 0 ||
		!slices.Equal(got.InFlight, []uint64{4}) {
		t.Errorf("nonsense became %+v", got)
	}
}
