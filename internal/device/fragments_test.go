package device

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"memtrace/analyzer/report"
)

// slowFragments paints every byte.
func slowFragments(segments, blocks []Span) report.Fragments {
	const size = 512
	var inside, taken, open [size + 1]bool // open: one may go on from the byte before
	for _, s := range segments {
		for i := s.Start; i < s.End; i++ {
			if i > s.Start || inside[i] {
				open[i] = true
			}
			inside[i] = true
		}
	}
	for _, a := range segments {
		for _, b := range segments {
			if a.End == b.Start && a.Joins && b.Joins {
				open[a.End] = true
			}
			if a.Start < b.Start && b.Start < a.End {
				open[b.Start] = true
			}
		}
	}
	for _, b := range blocks {
		for i := b.Start; i < min(b.End, size); i++ {
			taken[i] = true
		}
	}
	var f report.Fragments
	var piece, segment uint64
	used := false
	endPiece := func() {
		if piece > 0 {
			f.FreePieces++
			f.LargestFreeBytes = max(f.LargestFreeBytes, piece)
		}
		piece = 0
	}
	endSegment := func() {
		if endPiece(); !used {
			f.WholeFreeBytes += segment
		}
		segment, used = 0, false
	}
	for i := range size + 1 {
		if !inside[i] || !open[i] {
			endSegment()
		}
		switch {
		case !inside[i]:
			continue
		case taken[i]:
			endPiece()
			used = true
		default:
			f.FreeBytes++
			piece++
		}
		segment++
	}
	return f
}

func TestFragmentsAgainstPaint(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 3000 {
		var segments, blocks []Span
		for at := uint64(0); at < 400; {
			at += rng.Uint64N(3) * rng.Uint64N(20)
			s := Span{Start: at, End: at + 1 + rng.Uint64N(60), Joins: rng.IntN(2) == 0}
			segments = append(segments, s)
			at = s.End
		}
		for at := uint64(0); at < 500; {
			at += rng.Uint64N(40)
			b := Span{Start: at, End: min(at+1+rng.Uint64N(50), 512)}
			blocks = append(blocks, b)
			at = b.End
		}
		rng.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
		want := slowFragments(segments, blocks)
		what := fmt.Sprintf("round %d: segments %v, blocks %v", round, segments, blocks)
		if got := fragmentsOf(segments, blocks); got != want {
			t.Fatalf("%s: got %+v, want %+v", what, got, want)
		}
	}
}
