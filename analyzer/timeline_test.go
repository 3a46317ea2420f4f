package analyzer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// timelineState is everything that a slow replay knows after one event.
type timelineState struct {
	time   int64 // the latest so far
	blocks []*oracleBlock
	event  trace.Event
}

// replayStates replays a stream the slow way. Names are not copied: a state's blocks have the names that they have at
// the end.
func replayStates(src *memorySource, opts Options) (states []timelineState) {
	o := newOracle(src, opts)
	states = []timelineState{{}}
	for _, e := range src.events {
		o.event(e)
		now := timelineState{time: max(states[len(states)-1].time, e.Time), event: e}
		for _, b := range o.live {
			if b.visible && !b.unsized {
				now.blocks = append(now.blocks, b)
			}
		}
		states = append(states, now)
	}
	return states
}

// held divides a state's blocks of an account by key.
func (s *timelineState) held(o *oracle, a heap.Account, by string) (sums map[string]uint64, total uint64) {
	sums = map[string]uint64{}
	for _, b := range s.blocks {
		if b.account == a {
			sums[o.key(b.e, by)] += b.e.Size
			total += b.e.Size
		}
	}
	maps.DeleteFunc(sums, func(_ string, bytes uint64) bool { return bytes == 0 })
	return sums, total
}

// compareTimeline looks at every stretch of one level of detail.
func compareTimeline(v *report.Timeline, states []timelineState, o *oracle, by string) (problems []string) {
	differ := func(what string, got, want any) {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			problems = append(problems, fmt.Sprintf("width %d, %s: %v, want %v", v.WidthNS, what, got, want))
		}
	}
	for bin := range v.Bins() {
		begin, next := v.FromNS+int64(bin)*v.WidthNS, v.FromNS+int64(bin+1)*v.WidthNS
		first, _ := slices.BinarySearchFunc(states, begin, func(s timelineState, t int64) int {
			return int(min(max(s.time-t, -1), 1))
		})
		first = max(first-1, 0) // what was live when the stretch began
		last, _ := slices.BinarySearchFunc(states, next, func(s timelineState, t int64) int {
			return int(min(max(s.time-t, -1), 1))
		})
		var steps, marks uint64
		for _, s := range states[min(first+1, last):last] {
			if s.event.Kind == trace.EventStep {
				steps++
			}
			if s.event.Kind == trace.EventMark {
				marks++
			}
		}
		if first == 0 && states[0].time >= begin {
			steps, marks = v.Lanes[bin].Steps, v.Lanes[bin].Marks // the first state is no event
		}
		differ(fmt.Sprint("steps of stretch ", bin), v.Lanes[bin].Steps, steps)
		differ(fmt.Sprint("marks of stretch ", bin), v.Lanes[bin].Marks, marks)
		for _, l := range v.Levels {
			a := heap.AccountDriver
			if l.Level == report.LevelFramework {
				a = heap.AccountFramework
			}
			highest := &states[first]
			_, most := highest.held(o, a, by)
			for i := range states[first:last] {
				if _, total := states[first+i].held(o, a, by); total > most {
					highest, most = &states[first+i], total
				}
			}
			want, _ := highest.held(o, a, by)
			got := map[string]uint64{}
			for _, p := range l.Bins[bin].Held {
				got[v.Keys[p.Key].Key] += p.Bytes
			}
			what := fmt.Sprintf("%s of stretch %d", l.Level, bin)
			differ(what, l.Bins[bin].PeakBytes, most)
			differ(what+" by "+by, got, want)
			for _, line := range v.Lines {
				if line.Name != l.Level {
					continue
				}
				var high uint64
				for i := range states[first:last] {
					high = max(high, sum(states[first+i].blocks, func(b *oracleBlock) bool {
						return b.account == a && b.e.Device == line.Device
					}))
				}
				differ(fmt.Sprintf("%s, device %d", what, line.Device), line.PeakBytes[bin], high)
			}
		}
	}
	return problems
}

// TestTimelineAgreesWithOracle: at every level of detail each stretch has the highest value of a slow replay, and what
// its keys held then.
func TestTimelineAgreesWithOracle(t *testing.T) {
	for seed := range uint64(randomStreams() / 4) {
		rng := rand.New(rand.NewPCG(seed, 20))
		shape := streamShape{events: 20 + rng.IntN(400), noHandles: rng.IntN(4) == 0}
		if rng.IntN(3) > 0 {
			shape.delayed = func(trace.Event) bool { return true }
		}
		events := randomStream(seed, shape)
		if rng.IntN(2) == 0 { // crowded into few stretches
			for i := range events {
				events[i].Time /= 1 << 32
			}
		}
		src := windowSource(t, events)
		opts := Options{Timeline: []string{"tag", "library", "thread"}[rng.IntN(3)]}
		if rng.IntN(3) == 0 {
			opts.Devices = [][]int16{{0}, {1}}[rng.IntN(2)]
		}
		states := replayStates(src, opts)
		s, err := summarizeKeeping(src, opts, []int{0, 1, 10}[seed%3])
		if err != nil {
			t.Fatal(err)
		}
		o := newOracle(src, opts)
		for v := s.Timeline; ; v = v.Joined() {
			if problems := compareTimeline(v, states, o, opts.Timeline); len(problems) > 0 {
				t.Fatalf("seed %d, %d stretches: %s", seed, v.Bins(), problems[0])
			}
			if v.Bins() == 1 {
				break
			}
		}
	}
}

// TestWildWindowsAddUp: whatever a damaged stream does, a window's and a timeline's rows add up to their levels.
func TestWildWindowsAddUp(t *testing.T) {
	for seed := range uint64(randomStreams()) {
		rng := rand.New(rand.NewPCG(seed, 22))
		w := randomWindow(rng, randomStream(seed, streamShape{events: 300, wild: true, delayed: func(trace.Event) bool {
			return true
		}}))
		opts := Options{Question: Question{Groupings: []string{"name", "tag"}},
			Timeline: []string{"name", "tag", ByUse}[seed%3], From: parseAt(t, w.from), To: parseAt(t, w.to)}
		if rng.IntN(2) == 0 {
			opts.Ahead = windowSource(t, w.events)
		}
		s, err := summarizeKeeping(windowSource(t, w.events), opts, []int{0, 1}[seed%2])
		if err != nil {
			t.Fatalf("seed %d, %s to %s: %v", seed, w.from, w.to, err)
		}
		for _, l := range s.Window.Levels {
			level := s.Driver
			if l.Level == report.LevelFramework {
				level = s.Framework
			}
			if l.End.Bytes != level.LiveBytes || l.Start.Count+level.AllocCount-level.FreeCount != l.End.Count ||
				level.LiveCount() != l.End.Count {
				t.Fatalf("seed %d, %s to %s: %+v in the window, %+v in the level", seed, w.from, w.to, l.WindowBlocks,
					level)
			}
			for _, g := range l.Groups {
				var sum report.WindowBlocks
				for _, r := range g.Rows {
					sum.Plus(&r.WindowBlocks)
				}
				if sum != l.WindowBlocks {
					t.Fatalf("seed %d: rows by %s add up to %+v, not %+v", seed, g.By, sum, l.WindowBlocks)
				}
			}
			var highest uint64
			for _, b := range s.Timeline.Level(l.Level).Bins {
				var sum uint64
				for _, p := range b.Held {
					sum += p.Bytes
				}
				if sum != b.PeakBytes {
					t.Fatalf("seed %d, by %s: keys add up to %d, not %d", seed, opts.Timeline, sum, b.PeakBytes)
				}
				highest = max(highest, b.PeakBytes)
			}
			if highest != level.PeakBytes {
				t.Fatalf("seed %d: the timeline's highest is %d, the level's %d", seed, highest, level.PeakBytes)
			}
		}
	}
}
