package spool

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

func bySeq(a, b key) int { return cmp.Compare(a.seq, b.seq) }

// TestKeyOrder: against a general sort, for any number of rings and however much out of order theirs are.
func TestKeyOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var order keyOrder
	for round := range 500 {
		rings, length, swaps := 1+random.IntN(9), random.IntN(200), random.IntN(4)
		var keys []key
		for _, seq := range random.Perm(length) {
			// damaged spools have numbers twice
			keys = append(keys, key{uint64(seq / 2), uint64(seq), uint32(random.IntN(rings))})
		}
		slices.SortStableFunc(keys, func(a, b key) int { return int(a.ring) - int(b.ring) })
		for begin := 0; begin < length; {
			end := begin
			for end < length && keys[end].ring == keys[begin].ring {
				end++
			}
			slices.SortFunc(keys[begin:end], bySeq)
			begin = end
		}
		for range swaps * min(length, 1) {
			a, b := random.IntN(length), random.IntN(length)
			keys[a], keys[b] = keys[b], keys[a]
		}
		want := slices.Clone(keys)
		slices.SortStableFunc(want, bySeq)
		if got := order.sort(slices.Clone(keys)); !slices.Equal(got, want) {
			t.Fatalf("round %d: %d keys of %d rings are\n%v, want\n%v", round, length, rings, got, want)
		}
	}
}

// BenchmarkKeyOrder sorts what a training step leaves: two threads that take turns.
func BenchmarkKeyOrder(b *testing.B) {
	const length = 2048
	var steps []key
	for ring := range uint32(2) {
		for seq := range uint64(length) {
			if uint32(seq/512)&1 == ring {
				steps = append(steps, key{seq, seq, ring})
			}
		}
	}
	keys := make([]key, len(steps))
	for _, way := range []struct {
		name string
		sort func([]key) []key
	}{{"merge", new(keyOrder).sort}, {"sort", func(keys []key) []key { slices.SortFunc(keys, bySeq); return keys }}} {
		b.Run(way.name, func(b *testing.B) {
			for range b.N {
				way.sort(append(keys[:0], steps...))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(steps)), "ns/key")
		})
	}
}
