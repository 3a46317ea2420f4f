package page

import (
	"math/rand/v2"
	"slices"
	"testing"

	"memtrace/analyzer/report"
)

// randomHistory is blocks of five owners that are allocated and freed.
func randomHistory(events int, seed uint64) *report.History {
	rng, h, now := rand.New(rand.NewPCG(seed, 3)), &report.History{Owners: make([]report.HistoryOwner, 5)}, int64(0)
	var live []int
	for e := range events {
		now += int64(rng.IntN(3)) * int64(rng.IntN(1<<(rng.IntN(30))))
		h.Times = append(h.Times, now)
		if n := len(live); n > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(n)
			h.Blocks[live[i]].Died = uint32(e)
			live[i] = live[n-1]
			live = live[:n-1]
			continue
		}
		live = append(live, len(h.Blocks))
		h.Blocks = append(h.Blocks, report.HistoryBlock{Born: uint32(e), Died: uint32(events),
			Size: uint64(1 + rng.IntN(1e6)), Owner: uint32(rng.IntN(5))})
	}
	return h
}

// plainLive are the blocks after an event, computed from every one.
func plainLive(h *report.History, event int) (list []int32, bytes int64) {
	for i, b := range h.Blocks {
		if int(b.Born) <= event && int(b.Died) > event {
			list, bytes = append(list, int32(i)), bytes+int64(b.Size)
		}
	}
	return list, bytes
}

// TestPastAgreesWithPlainLists: sums of chunks and checkpoints equal those computed from every block.
func TestPastAgreesWithPlainLists(t *testing.T) {
	const events = 4*chunkEvents + 77
	for seed := range uint64(4) {
		h := randomHistory(events, seed)
		p := newPast(h, h.Times[events-1])
		p.check(200)
		totals := make([]int64, events)
		for e := range totals {
			live, bytes := plainLive(h, e)
			totals[e] = bytes
			var got []int32
			p.eachLive(e, func(b int32) { got = append(got, b) })
			if !slices.Equal(got, live) || p.totalAt(e) != bytes {
				t.Fatalf("seed %d, event %d: blocks %v of %d bytes, want %v of %d", seed, e, got, p.totalAt(e),
					live, bytes)
			}
		}
		for _, stretch := range [][2]int{{0, events - 1}, {1, 2 * chunkEvents}, {chunkEvents - 1, chunkEvents},
			{chunkEvents, 3*chunkEvents - 1}, {700, 720}} {
			from, to := stretch[0], stretch[1]
			if got, want := p.highest(from, to), from+
				slices.Index(totals[from:to+1], slices.Max(totals[from:to+1])); got != want {
				t.Errorf("seed %d, %v: highest at %d, want %d", seed, stretch, got, want)
			}
			comparePastLives(t, p, from, to)
			for _, by := range []axis{byTime, byEvents} {
				comparePastColumns(t, p, totals, from, to, by)
			}
		}
	}
}

func comparePastLives(t *testing.T, p *past, from, to int) {
	t.Helper()
	want := map[float64]lives{}
	for _, b := range p.h.Blocks {
		if int(b.Died) <= from || int(b.Died) > to {
			continue
		}
		below := 1e3
		for float64(p.h.Times[b.Died]-p.h.Times[b.Born]) >= below {
			below *= 10
		}
		want[below] = lives{below, want[below].Count + 1, want[below].Bytes + b.Size}
	}
	got := p.livesBetween(from, to)
	for _, row := range got {
		if row != want[row.Below] {
			t.Errorf("from %d to %d: %+v, want %+v", from, to, row, want[row.Below])
		}
	}
	if len(got) != len(want) {
		t.Errorf("from %d to %d: %d rows, want %d", from, to, len(got), len(want))
	}
}

func comparePastColumns(t *testing.T, p *past, totals []int64, from, to int, by axis) {
	t.Helper()
	begin, end, layerOf := p.position(from, by), p.position(to, by), []int{0, 1, 2, 2, 2}
	if begin == end {
		return
	}
	for _, count := range []int{1, 9, 700} {
		v, e := p.columns(begin, end, count, by, layerOf, 3), p.lastBefore(begin, by)+1
		for c := range count {
			best, at := int64(0), e-1
			if e > 0 {
				best = totals[e-1]
			}
			for ; e < len(totals) && (p.position(e, by) < begin+float64(c+1)*(end-begin)/float64(count) ||
				c+1 == count && p.position(e, by) <= end); e++ {
				if totals[e] > best {
					best, at = totals[e], e
				}
			}
			held := make([]uint64, 3)
			live, _ := plainLive(p.h, at)
			for _, b := range live {
				held[layerOf[p.h.Blocks[b].Owner]] += p.h.Blocks[b].Size
			}
			if v.Event[c] != at || v.Total[c] != uint64(best) || !slices.Equal(v.Bytes[3*c:3*c+3], held) {
				t.Fatalf("column %d of %d, from %d to %d: %d bytes at %d, %v, want %d at %d, %v", c, count, from, to,
					v.Total[c], v.Event[c], v.Bytes[3*c:3*c+3], best, at, held)
			}
		}
	}
}

// TestQueryCostDependsOnWidth: the cost of a query depends on the picture's width, and hardly on the number of events.
func TestQueryCostDependsOnWidth(t *testing.T) {
	const width = 200
	cost := map[int]int{}
	for _, events := range []int{60_000, 480_000} {
		h := randomHistory(events, 1)
		p, layerOf := newPast(h, h.Times[events-1]), make([]int, 5)
		p.visited = 0
		p.columns(float64(events/8), float64(events), width, byEvents, layerOf, 1)
		p.highest(events/8, events-1)
		p.livesBetween(events/8, events-1)
		if cost[events] = p.visited; p.visited > 3*(width+2)*chunkEvents+3*events/chunkEvents {
			t.Errorf("%d steps for %d events", p.visited, events)
		}
	}
	if cost[480_000] > 4*cost[60_000] {
		t.Errorf("%d steps, %d for an eighth of the events", cost[480_000], cost[60_000])
	}
}
