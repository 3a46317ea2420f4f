package moment

import (
	"maps"
	"math/rand/v2"
	"testing"

	"memtrace/analyzer/report"
)

// TestPhasesAgreeWithNaive: at every level of detail each interval has the time that passed in it between two
// allocations in a row of one phase, to the nanosecond, and their number.
func TestPhasesAgreeWithNaive(t *testing.T) {
	names := []string{"", "forward", "backward", "optimizer"}
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 31))
		line := NewTimeline(1, int64(seed%3)*1000)
		type step struct {
			from, to int64 // of what passed
			name     string
			at       int64
		}
		var steps []step
		now, last, late := line.from, "", int64(0)
		for range 400 {
			now += int64(rng.IntN(1 << (4 + rng.IntN(int(4+seed%14)))))
			if late = now; rng.IntN(10) == 0 {
				late -= 500 // a late event
			}
			name := last
			if rng.IntN(3) == 0 {
				name = names[rng.IntN(len(names))]
			}
			line.Reach(now)
			line.Phase(name, late)
			at := max(late, line.phase.to)
			one := step{from: at, to: at, name: name, at: now}
			if n := len(steps); n > 0 && name == last {
				one.from = steps[n-1].to
			}
			if n := len(steps); n > 0 {
				one.to, one.from = max(one.to, steps[n-1].to), max(one.from, min(steps[n-1].to, one.from))
			}
			steps = append(steps, one)
			last = name
		}
		for v := line.Value(now); ; v = v.Joined() {
			for i, lane := range v.Lanes {
				begin, end := v.FromNS+int64(i)*v.WidthNS, v.FromNS+int64(i+1)*v.WidthNS
				ns, allocs := map[string]int64{}, map[string]uint64{}
				for _, s := range steps {
					if s.name == "" {
						continue
					}
					if overlap := min(s.to, end) - max(s.from, begin); overlap > 0 {
						ns[s.name] += overlap
					}
					if s.at >= begin && s.at < end {
						allocs[s.name]++
					}
				}
				gotNS, gotAllocs := map[string]int64{}, map[string]uint64{}
				for _, p := range lane.Phases {
					if gotAllocs[p.Phase] = p.Allocs; p.Allocs == 0 {
						delete(gotAllocs, p.Phase)
					}
					if gotNS[p.Phase] = p.NS; p.NS == 0 {
						delete(gotNS, p.Phase)
					}
				}
				if !maps.Equal(ns, gotNS) || !maps.Equal(allocs, gotAllocs) {
					t.Fatalf("seed %d, stretch %d of %d: %v, %v, want %v, %v", seed, i, v.Bins(), gotNS, gotAllocs,
						ns, allocs)
				}
			}
			if v.Bins() == 1 {
				break
			}
		}
	}
}

// A timeline that restarts drops the earlier phases.
func TestPhasesRestart(t *testing.T) {
	line := NewTimeline(1, 0)
	for at := range int64(10) {
		line.Reach(at * 100)
		line.Phase("forward", at*100)
	}
	line.Restart(1000)
	line.Phase("forward", 1200)
	line.Phase("forward", 1300)
	if got, want := line.Value(2000).Lanes[0].Phases, (report.PhasePart{Phase: "forward", NS: 100, Allocs: 2}); len(
		got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
