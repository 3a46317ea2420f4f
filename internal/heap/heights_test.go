package heap

import (
	"math/rand/v2"
	"testing"
)

// Each interval has the highest of all totals in it, including one that began before it.
func TestHeights(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 5))
		type change struct {
			time int64
			live uint64
		}
		var changes []change
		h := HeightSeries{}
		time := int64(0)
		for range r.IntN(3000) {
			time += int64(r.IntN(1 << (1 + r.IntN(24))))
			c := change{time, uint64(r.IntN(1 << 30))}
			changes = append(changes, c)
			h.Set(c.live, c.time)
		}
		end := time + int64(r.IntN(1<<22))
		v := h.Value("x", end)
		if len(changes) == 0 {
			if v != nil {
				t.Fatal("heights of nothing")
			}
			continue
		}
		from := changes[0].time // nothing was held before it
		if len(v.PeakBytes) > heightBins || v.FromNS != from || int64(len(v.PeakBytes)) != (end-from)/v.WidthNS+1 {
			t.Fatalf("seed %d: %d stretches of %d ns from %d to %d", seed, len(v.PeakBytes), v.WidthNS, v.FromNS, end)
		}
		if v.ChangedNS != time {
			t.Fatalf("seed %d: changed last at %d, want %d", seed, v.ChangedNS, time)
		}
		next, live := 0, uint64(0)
		for i, got := range v.PeakBytes {
			want := live
			for ; next < len(changes) && (changes[next].time-from)/v.WidthNS == int64(i); next++ {
				live = changes[next].live
				want = max(want, live)
			}
			if got != want {
				t.Fatalf("seed %d, stretch %d of %d: %d, want %d", seed, i, len(v.PeakBytes), got, want)
			}
		}
	}
}

// Absurd times of damaged traces cost nothing.
func TestHeightsOfExtremeTimes(t *testing.T) {
	t.Parallel()
	h := HeightSeries{}
	for _, time := range []int64{1<<63 - 1, 0, 1 << 62, 5} {
		h.Set(7, time)
	}
	if v := h.Value("x", 1<<63-1); len(v.PeakBytes) > heightBins {
		t.Errorf("%d stretches", len(v.PeakBytes))
	}
}
