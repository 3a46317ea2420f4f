package moment

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"memtrace/analyzer/report"
)

// naive keeps every state of the run.
type naive struct {
	states []state
	now    map[int]block // by number
	time   int64
}

type state struct {
	time int64
	live map[int]block
}

type block struct {
	key  uint32
	size uint64
}

func (n *naive) keep(time int64) {
	n.time = max(n.time, time)
	n.states = append(n.states, state{n.time, maps.Clone(n.now)})
}

// highest returns the highest moment of an interval.
func (n *naive) highest(begin, end int64) (most uint64, held map[uint32]uint64) {
	look := func(live map[int]block, first bool) {
		var sum uint64
		for _, b := range live {
			sum += b.size
		}
		if !first && sum <= most {
			return
		}
		most, held = sum, map[uint32]uint64{}
		for _, b := range live {
			if b.size > 0 {
				held[b.key] += b.size
			}
		}
	}
	at := map[int]block{}
	for _, s := range n.states {
		if s.time < begin {
			at = s.live
		}
	}
	look(at, true)
	for _, s := range n.states {
		if s.time >= begin && s.time < end {
			look(s.live, false)
		}
	}
	return most, held
}

// compare checks every interval of every level of detail.
func (n *naive) compare(t *testing.T, seed uint64, line *Timeline, number int) {
	v := line.Value(n.time)
	v.Levels = []report.TimelineLevel{{Bins: line.Stacks[0].Bins()}}
	v.Lines = []report.TimelineLine{{PeakBytes: line.Highs(number)}}
	for ; ; v = v.Joined() {
		for i := range v.Bins() {
			most, held := n.highest(v.Begin(i), v.FromNS+int64(i+1)*v.WidthNS)
			got := map[uint32]uint64{}
			for _, p := range v.Levels[0].Bins[i].Held {
				got[p.Key] += p.Bytes
			}
			if b := v.Levels[0].Bins[i]; b.PeakBytes != most || fmt.Sprint(got) != fmt.Sprint(held) ||
				v.Lines[0].PeakBytes[i] != most {
				t.Fatalf("seed %d, stretch %d of %d: %d by key %v, line %d, want %d by key %v", seed, i, v.Bins(),
					b.PeakBytes, got, v.Lines[0].PeakBytes[i], most, held)
			}
		}
		if v.Bins() == 1 {
			return
		}
	}
}

// TestAgreesWithNaive: blocks are allocated, freed and get other keys, some of them for all of their past, at times
// that are close together and far apart.
func TestAgreesWithNaive(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 21))
		line := NewTimeline(1, 0)
		number, s := line.AddLine(), line.Stacks[0]
		n := &naive{now: map[int]block{}}
		opened, since := map[int]uint64{}, map[int]int{}
		allocs := uint64(0)
		n.keep(0)
		for step := range 150 {
			at := n.time
			if rng.IntN(3) > 0 {
				at += int64(rng.IntN(1 << (6 + rng.IntN(int(8+seed%12)))))
			}
			id := -1
			for i := range n.now {
				if id < 0 || rng.IntN(3) == 0 {
					id = i
				}
			}
			line.Reach(at)
			switch b := n.now[id]; {
			case id < 0 || rng.IntN(5) < 2:
				allocs++
				b = block{uint32(rng.IntN(5)), uint64(rng.IntN(100))}
				s.Grow(b.key, b.size)
				s.Opened(at, allocs)
				n.now[step], opened[step], since[step] = b, allocs, len(n.states)
			case rng.IntN(2) == 0:
				s.Shrink(b.key, b.size)
				delete(n.now, id)
			default:
				to, past := uint32(rng.IntN(5)), rng.IntN(2) == 0
				s.Move(b.key, to, b.size, opened[id], past)
				n.now[id] = block{to, b.size}
				for i := since[id]; past && i < len(n.states); i++ {
					n.states[i].live[id] = n.now[id]
				}
				if !past { // a highest moment keeps its key; a later change applies to the time since then only
					opened[id], since[id] = allocs+1, len(n.states)
					allocs++
					s.allocs = allocs
				}
			}
			n.keep(at)
			line.Set(number, s.total)
			if seed%5 == 0 && step == 60 {
				line.Restart(n.time)
				n.states = []state{{n.time, maps.Clone(n.now)}}
				for i := range since {
					since[i] = 0
				}
			}
		}
		n.compare(t, seed, line, number)
	}
}

// TestBounded: neither intervals nor keys grow with the trace.
func TestBounded(t *testing.T) {
	line := NewTimeline(1, 0)
	s := line.Stacks[0]
	for i := range int64(300_000) {
		line.Reach(i * i)
		s.Grow(uint32(i%MaxTimelineKeys), 1)
		s.Opened(i*i, uint64(i+1))
		if i >= 100 {
			s.Shrink(uint32((i-100)%MaxTimelineKeys), 1)
		}
	}
	parts := 0
	for _, b := range s.bins {
		parts += len(b.Held)
	}
	if len(s.bins) >= MaxTimelineBins || len(line.lanes) > MaxTimelineBins ||
		parts > MaxTimelineBins*101 || len(s.keys) > MaxTimelineKeys ||
		len(s.active) > 10_000 {
		t.Errorf("%d stretches, %d lanes, %d parts, %d keys, %d active", len(s.bins), len(line.lanes), parts,
			len(s.keys), len(s.active))
	}
}
