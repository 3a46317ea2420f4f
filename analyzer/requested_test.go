package analyzer

import (
	"math/rand/v2"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/moment"
	"memtrace/trace"
)

// What was requested of the blocks at each device's peak, at the common one, at a moment and at the end is what a plain
// list of the live blocks says.
func TestRequested(t *testing.T) {
	t.Parallel()
	type block struct {
		device        int16
		size, request uint64 // request 0: unknown
	}
	sum := func(live map[uint64]block, device int16) (bytes uint64, r report.Requested) {
		for _, b := range live {
			switch {
			case device >= 0 && b.device != device:
			case b.request == 0:
				bytes += b.size
				r.UnknownBytes += b.size
			default:
				bytes += b.size
				r.Bytes += b.request
				r.RestBytes += b.size - b.request
			}
		}
		return bytes, r
	}
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 7))
		s := &story{}
		live := map[uint64]block{}
		var peak [3]uint64 // all devices, then each
		var atPeak [3]report.Requested
		var atTime report.Requested
		for i := range 400 {
			addr := uint64(1 + random.IntN(60))
			if b, taken := live[addr]; taken {
				s.add(trace.Event{Kind: trace.EventFree, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, Addr: addr,
					Device: b.device, Size: b.size})
				delete(live, addr)
			} else {
				b := block{int16(random.IntN(2)), 512 * uint64(1+random.IntN(9)), 0}
				e := trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, Addr: addr,
					Device: b.device, Size: b.size}
				if random.IntN(5) > 0 {
					b.request = 1 + uint64(random.IntN(int(b.size)))
					e.Rest = 1 + b.size - b.request
				}
				s.add(e)
				live[addr] = b
			}
			for n := range peak {
				if bytes, r := sum(live, int16(n-1)); bytes > peak[n] {
					peak[n], atPeak[n] = bytes, r
				}
			}
			if i == 200 {
				_, atTime = sum(live, -1)
			}
		}
		at, err := moment.Parse("201us")
		if err != nil {
			t.Fatal(err)
		}
		got := s.summary(t, Options{Question: Question{At: at}})
		_, end := sum(live, -1)
		if *got.Framework.RequestedAtPeak != atPeak[0] || *got.Framework.RequestedLive != end {
			t.Fatalf("seed %d: %+v %+v, want %+v %+v", seed, got.Framework.RequestedAtPeak, got.Framework.RequestedLive,
				atPeak[0], end)
		}
		if *got.At.Framework.Requested != atTime {
			t.Fatalf("seed %d: %+v after 201 us, want %+v", seed, got.At.Framework.Requested, atTime)
		}
		for n, d := range got.Devices {
			if *d.Framework.RequestedAtPeak != atPeak[n+1] {
				t.Fatalf("seed %d, device %d: %+v, want %+v", seed, d.Index, d.Framework.RequestedAtPeak, atPeak[n+1])
			}
		}
	}
}

// A trace that tells no requests has none, and neither has one that lost records.
func TestRequestedUnknown(t *testing.T) {
	t.Parallel()
	block := trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, Addr: 1, Size: 512}
	if got := (&story{}).add(block).summary(t, Options{}); got.Framework.RequestedAtPeak != nil ||
		got.Framework.RequestedLive != nil {
		t.Errorf("%+v", got.Framework)
	}
	block.Rest = 13
	if got := (&story{}).add(block).lost(1, 1).summary(t, Options{}); got.Framework.RequestedAtPeak != nil {
		t.Errorf("after a loss: %+v", got.Framework.RequestedAtPeak)
	}
	block.Rest = 600 // more than the block has
	if got := (&story{}).add(block).summary(t, Options{}); got.Framework.RequestedAtPeak != nil {
		t.Errorf("a request of less than nothing: %+v", got.Framework.RequestedAtPeak)
	}
}
