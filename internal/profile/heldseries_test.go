package profile

import (
	"math/rand/v2"
	"slices"
	"testing"

	"memtrace/internal/heap"
)

// The series of every owner equals that computed from a plain list of all its states, however often intervals were
// joined.
func TestHeldSeries(t *testing.T) {
	t.Parallel()
	for _, events := range []int{0, 1, 2, 16, 127, 128, 129, 2047, 2048, 2049, 5000, 70000} {
		r := rand.New(rand.NewPCG(uint64(events), 1))
		h := NewHeldSeries()
		const owners = 7
		var live [owners][]uint64
		history := make([][owners]uint64, 1, events+1) // bytes after each event
		lastAlloc := 0
		for i := range events {
			now := history[i]
			// The last tenth frees only, as programs do that end.
			if o := r.IntN(owners); len(live[o]) > 0 && (r.IntN(2) == 0 || i > events*9/10) {
				k := r.IntN(len(live[o]))
				size := live[o][k]
				live[o] = slices.Delete(live[o], k, k+1)
				now[o] -= size
				h.Closed(h.owner(heap.AccountDriver, uint64(o)), size, int64(i))
			} else {
				size := uint64(1 + r.IntN(1000))
				live[o] = append(live[o], size)
				now[o] += size
				h.Opened(h.owner(heap.AccountDriver, uint64(o)), size, int64(i))
				lastAlloc = i
			}
			history = append(history, now)
		}
		bins := events / int(h.perBin)
		if len(h.Ends) != bins || bins >= heldBins {
			t.Fatalf("%d events: %d stretches of %d", events, len(h.Ends), h.perBin)
		}
		n := min(bins, lastAlloc/int(h.perBin))
		list := h.Of(heap.AccountDriver)
		for _, v := range list {
			if v.Lows == nil {
				continue
			}
			for bin := range n {
				from, to := bin*int(h.perBin), (bin+1)*int(h.perBin)
				low := history[from][v.ID]
				for _, state := range history[from : to+1] {
					low = min(low, state[v.ID])
				}
				if v.Lows[bin] != low {
					t.Fatalf("%d events, owner %d, stretch %d of %d: %d, want %d", events, v.ID, bin, n, v.Lows[bin],
						low)
				}
			}
			if last := history[lastAlloc+1][v.ID]; len(v.Lows) != n+1 || v.Lows[n] != last {
				t.Fatalf("%d events, owner %d: %d points, the last one %d, want %d, %d", events, v.ID, len(v.Lows),
					v.Lows[n], n+1, last)
			}
			if v.Live != history[events][v.ID] || int(v.Left) != len(live[v.ID]) {
				t.Fatalf("%d events, owner %d: %d bytes in %d blocks at the end", events, v.ID, v.Live, v.Left)
			}
		}
		if events > 100 && len(list) != owners {
			t.Errorf("%d events: %d owners", events, len(list))
		}
	}
}

// More call stacks than there are series share one.
func TestHeldSeriesShared(t *testing.T) {
	t.Parallel()
	h := NewHeldSeries()
	for id := range uint64(heldOwners + 10) {
		h.Opened(h.owner(heap.AccountDriver, id+1), 1, int64(id))
	}
	if len(h.owners) != heldOwners+1 || h.owners[heldOwners].live != 10 {
		t.Errorf("%d owners, the last one with %d blocks", len(h.owners), h.owners[heldOwners].live)
	}
}
