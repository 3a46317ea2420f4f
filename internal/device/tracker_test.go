package device

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"memtrace/trace"
)

// The waiting memory equals that computed from a plain list of blocks and their events, at every moment and at the
// framework's peak.
func TestWaiting(t *testing.T) {
	t.Parallel()
	type block struct {
		size   uint64
		slot   int
		events map[uint64]bool
	}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		var w Waiting
		blocks := map[uint64]*block{}
		var epoch, most, ever, unknown uint64
		atPeak := []uint64{0, 0, 0}
		sums := func() []uint64 {
			list := make([]uint64, 3)
			for _, b := range blocks {
				list[b.slot] += b.size
			}
			return list
		}
		for range 300 {
			event, addr := random.Uint64N(20), random.Uint64N(8)
			for a, b := range blocks { // complete, recorded or not
				if delete(b.events, event); len(b.events) == 0 {
					delete(blocks, a)
				}
			}
			switch random.IntN(3) {
			case 0:
				w.complete(event, epoch)
			case 1:
				w.complete(event, epoch)
				if random.IntN(4) == 0 {
					epoch++ // a new maximum
					atPeak = sums()
				}
			default:
				size, slot := 1+random.Uint64N(1000), 1+int(addr%2)
				if b := blocks[addr]; b != nil {
					size = b.size
				}
				w.begin(&trace.Event{Kind: trace.EventWait, Addr: addr, Size: size, Handle: event}, slot, epoch)
				if addr == 0 {
					unknown++
					w.complete(event, epoch)
					break
				}
				if blocks[addr] == nil {
					blocks[addr] = &block{size, slot, map[uint64]bool{}}
					ever++
				}
				blocks[addr].events[event] = true
			}
			all := sums()
			most = max(most, all[1]+all[2])
			if got := append(w.Now(), 0, 0, 0)[:3]; !slices.Equal(got, all) {
				t.Fatalf("seed %d: %v wait, want %v", seed, got, all)
			}
		}
		got := w.value(epoch)
		if got.Blocks != ever || got.Peak != most || got.Unknown != unknown {
			t.Fatalf("seed %d: %+v, want %d blocks, %d at most, %d unknown", seed, got, ever, most, unknown)
		}
		if peak := append(w.AtPeak(epoch), 0, 0, 0)[:3]; epoch > 0 && !slices.Equal(peak, atPeak) {
			t.Fatalf("seed %d: %v waited at the peak, want %v", seed, peak, atPeak)
		}
	}
}

// emptyCache counts what its thread freed meanwhile; settings and queries are listed as they were recorded.
func TestEmptyCacheAndQueries(t *testing.T) {
	t.Parallel()
	var tr AllocatorTracker
	text := func(id trace.StringID) string {
		return map[trace.StringID]string{1: "per_process_memory_fraction", 2: "max_split_size_mb:64"}[id]
	}
	event := func(e trace.Event) { tr.Event(&e, 1, 0, text) }
	event(trace.Event{Kind: trace.EventSetting, Name: 2, Time: 5, Device: -1})
	event(trace.Event{Kind: trace.EventSetting, Name: 1, Time: 6, Device: 1, Count: math.Float64bits(0.25)})
	event(trace.Event{Kind: trace.EventSetting, Name: 1, Count: math.Float64bits(math.NaN())}) // nonsense
	for _, bytes := range []uint64{100, 0, 300} {
		event(trace.Event{Kind: trace.EventEmptyCache, Thread: 1, Count: trace.Begun, Time: int64(bytes), Stack: 9})
		tr.Freed(1, bytes)
		tr.Freed(2, 7) // another thread
		event(trace.Event{Kind: trace.EventEmptyCache, Thread: 1, Count: trace.Ended})
	}
	tr.Freed(1, 7)                                                                 // after it
	event(trace.Event{Kind: trace.EventEmptyCache, Thread: 3, Count: trace.Ended}) // whose beginning is lost
	for i, free := range []uint64{50, 40} {
		event(trace.Event{Kind: trace.EventAsk, Size: 80, Allocated: free, Stack: trace.StackID(i + 1), Time: int64(i)})
	}
	v := tr.Value(0, func(native, _ trace.StackID) (string, string) {
		return map[trace.StackID]string{9: "a.py:3", 1: "b.py:1", 2: "b.py:1"}[native], "libx.so"
	})
	if len(v.Settings) != 1 || v.Settings[0].Text != "max_split_size_mb:64" || v.Settings[0].TimeNS != 5 {
		t.Errorf("settings %+v", v.Settings)
	}
	if len(v.Fractions) != 1 || v.Fractions[0].Fraction != 0.25 || v.Fractions[0].Device != 1 {
		t.Errorf("fractions %+v", v.Fractions)
	}
	if e := v.EmptyCache; e.Count != 3 || e.GivenBack != 400 || e.LargestBytes != 300 || e.LargestTimeNS != 300 ||
		e.NothingCount != 1 || e.Place != "a.py:3" {
		t.Errorf("emptyCache %+v", e)
	}
	if len(v.Asked) != 1 || v.Asked[0].Count != 2 || v.Asked[0].FirstFree != 50 || v.Asked[0].LastFree != 40 ||
		v.Asked[0].Total != 80 || v.Asked[0].Place != "b.py:1" {
		t.Errorf("questions %+v", v.Asked)
	}
}
