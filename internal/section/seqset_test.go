package section

import (
	"math/rand/v2"
	"testing"
)

// checkSeqSet compares a set with a plain map, number by number.
func checkSeqSet(t *testing.T, s *SeqSet, want map[uint64]bool) {
	t.Helper()
	var top, positive uint64
	for seq := range want {
		top = max(top, seq)
		if seq > 0 {
			positive++
		}
	}
	if s.Len() != uint64(len(want)) || s.Gaps() != top-positive {
		t.Fatalf("len %d, gaps %d; want %d, %d", s.Len(), s.Gaps(), len(want), top-positive)
	}
	for seq := uint64(0); seq <= top+2; seq++ {
		if s.Contains(seq) != want[seq] {
			t.Fatalf("contains %d: %v, want %v", seq, s.Contains(seq), want[seq])
		}
	}
	var before span
	for i, chunk := range s.chunks {
		if len(chunk) == 0 || len(chunk) > chunkSpans {
			t.Fatalf("chunk of %d spans", len(chunk))
		}
		for j, sp := range chunk {
			if sp.lo > sp.hi || i+j > 0 && sp.lo <= before.hi+1 {
				t.Fatalf("span %v after %v: not apart", sp, before)
			}
			before = sp
		}
	}
}

func TestSeqSetAgainstMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		var s SeqSet
		want := make(map[uint64]bool)
		limit := uint64(1 + rng.IntN(6000))
		for range rng.IntN(5000) {
			seq := rng.Uint64N(limit)
			if rng.IntN(8) == 0 {
				hi := seq + rng.Uint64N(40)
				s.AddRange(seq, hi)
				for ; seq <= hi; seq++ {
					want[seq] = true
				}
				continue
			}
			if s.Add(seq) == want[seq] {
				t.Fatalf("round %d: add %d: new %v", round, seq, want[seq])
			}
			want[seq] = true
		}
		checkSeqSet(t, &s, want)
	}
}

// One thread's ring after the other: even numbers, then odd ones that close every gap.
func TestSeqSetFillsUp(t *testing.T) {
	var s SeqSet
	const n = 20000
	for seq := uint64(2); seq <= n; seq += 2 {
		s.Add(seq)
	}
	if s.Gaps() != n/2 {
		t.Errorf("gaps %d, want %d", s.Gaps(), n/2)
	}
	for seq := uint64(1); seq <= n; seq += 2 {
		s.Add(seq)
	}
	if s.Gaps() != 0 || len(s.chunks) != 1 || len(s.chunks[0]) != 1 {
		t.Errorf("gaps %d, %d chunks: a dense set is one span", s.Gaps(), len(s.chunks))
	}
}

func TestSeqSetAtTheTop(t *testing.T) {
	var s SeqSet
	const top = 1<<64 - 1
	for _, seq := range []uint64{top, top - 1, 0, top, 1} {
		s.Add(seq)
	}
	if s.Len() != 4 || !s.Contains(top) || !s.Contains(0) || s.Contains(2) || s.Gaps() != top-3 {
		t.Errorf("len %d, gaps %d", s.Len(), s.Gaps())
	}
}

func TestSeqSetEmpty(t *testing.T) {
	var s SeqSet
	if _, ok := s.Max(); ok || s.Contains(0) || s.Gaps() != 0 || s.Len() != 0 {
		t.Error("the zero value is not empty")
	}
	s.AddRange(5, 4)
	if s.Len() != 0 {
		t.Error("an empty range adds nothing")
	}
}
