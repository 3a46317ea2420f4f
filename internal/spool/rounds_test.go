package spool

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"memtrace/internal/section"
	"memtrace/trace"
)

// newWideSpool lays out a spool with that many rings, each with a chain of so many segments, without a record.
func newWideSpool(rings, segments int) *Spool {
	count := rings * segments
	s := &Spool{data: make([]byte, pageSize+rings*ringSize+count*segmentSize), ringsMax: uint32(rings),
		segmentsMax: uint32(count), ringsOffset: pageSize,
		segmentsOffset: uint64(pageSize + rings*ringSize)}
	put := func(off uint64, v uint32) { *s.data.word32(off) = v }
	put(offRingsUsed, uint32(rings))
	put(offSegmentsUsed, uint32(count))
	for i := range rings {
		off := s.ringOffset(uint32(i))
		put(off+ringState, ringActive)
		put(off+ringThread, uint32(i+1))
		put(off+ringFirstSegment, uint32(i*segments+1))
		for n := 1; n < segments; n++ {
			base, _ := s.segmentOffset(uint32(i*segments + n))
			put(base+segmentNext, uint32(i*segments+n+1))
		}
	}
	return s
}

// commit writes a record with that number after the last one of the position's chain.
func (s *Spool) commit(at *position, seq uint64) {
	if at.slot == segmentSlots {
		base, _ := s.segmentOffset(at.segment)
		*at = position{s.data.load32(base + segmentNext), 1}
	}
	base, _ := s.segmentOffset(at.segment)
	off := base + uint64(at.slot)*recordSize
	s.data[off+recKind] = byte(trace.EventStep)
	*s.data.word64(off + recSize) = seq
	*s.data.word64(off + recSeq) = seq
	at.slot++
	if *s.data.word64(offSeq) < seq {
		*s.data.word64(offSeq) = seq
	}
}

// A thousand threads that each run for a while in turn were drained 64 numbers a round: each round read all rings, took
// from one, and drained almost nothing.
func TestRoundsDoNotGrowWithRings(t *testing.T) {
	for _, rings := range []int{1, 4, 1000} {
		const total = 200_000
		s := newWideSpool(rings, total/rings/(segmentSlots-1)+2)
		for seq, ring := uint64(1), 0; seq <= total; ring++ {
			at := position{s.data.load32(s.ringOffset(uint32(ring%rings)) + ringFirstSegment), 1}
			for range (total + rings - 1) / rings {
				if seq <= total {
					s.commit(&at, seq)
					seq++
				}
			}
		}
		c := NewCursor(s)
		rounds, events := 0, 0
		for more := true; more; rounds++ {
			var batch []trace.Event
			batch, _, more = c.Collect(false)
			events += len(batch)
		}
		if want := total/maxCollect + 1; events != total || rounds > want {
			t.Errorf("%d rings: %d events in %d rounds, want %d in at most %d", rings, events, rounds, total, want)
		}
	}
}

// A look into the spool of a program that recorded faster than it was read had no end: `memtrace top --once` did not
// come back. What is recorded after the look began is left to the next one, in all tries that the drainer may cost.
func TestLookEnds(t *testing.T) {
	const total = 3 * maxCollect
	s := newWideSpool(1, 2*total/(segmentSlots-1)+2)
	at := position{s.data.load32(s.ringOffset(0) + ringFirstSegment), 1}
	seq := uint64(0)
	record := func() {
		for range total {
			seq++
			s.commit(&at, seq)
		}
	}
	record()
	f := &Follower{spool: s, tables: &trace.Tables{}, info: trace.Info{}}
	cursor := NewCursor(s)
	cursor.end = seq + 1
	record() // meanwhile
	f.collect(cursor)
	if last := f.pending[len(f.pending)-1].Seq; len(f.pending) != total || last != total {
		t.Errorf("%d records up to number %d, want %d", len(f.pending), last, total)
	}
	if err := f.snapshot(); err != nil || len(f.pending) != 2*total || f.drawn.Last != seq {
		t.Errorf("the next look: %d records of %d, %v", len(f.pending), f.drawn.Last, err)
	}
}

// Whatever threads do in which order, every record comes once, in order below the watermark, and never above it; calls
// that nest a few levels deep are never late.
func TestCollectAgainstOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 60 {
		rings := 1 + random.IntN(12)
		s := newWideSpool(rings, 1+40_000/(segmentSlots-1)/rings*4)
		threads := make([]writingThread, rings)
		for i := range threads {
			threads[i].at = position{s.data.load32(s.ringOffset(uint32(i)) + ringFirstSegment), 1}
		}
		c := NewCursor(s)
		var seen section.SeqSet
		last, seq := uint64(0), uint64(0)
		check := func(force bool) (more bool) {
			events, watermark, more := c.Collect(force)
			for _, e := range events {
				switch {
				case e.Seq != e.Count:
					t.Fatalf("round %d: record %d came as %d", round, e.Count, e.Seq)
				case !seen.Add(e.Seq):
					t.Fatalf("round %d: %d came twice", round, e.Seq)
				case e.Seq <= last || e.Flags&trace.FlagLate != 0:
					t.Fatalf("round %d: %d came behind %d, flags %d", round, e.Seq, last, e.Flags)
				case e.Seq >= watermark:
					t.Fatalf("round %d: %d came with the watermark %d", round, e.Seq, watermark)
				}
				last = e.Seq
			}
			return more
		}
		for range random.IntN(40_000) { // a ring may get four times its share
			i := random.IntN(rings)
			threads[i].step(s, uint32(i), &seq, random)
			if random.IntN(2000) == 0 {
				check(false)
			}
		}
		for i := range threads {
			threads[i].leave(s, uint32(i))
		}
		for check(false) {
		}
		if seen.Len() != seq || seen.Gaps() != 0 {
			t.Fatalf("round %d: %d of %d records, %d missing", round, seen.Len(), seq, seen.Gaps())
		}
	}
}

// writingThread does what a thread of the program does: calls that draw a number at once and commit it after those of
// the nested calls.
type writingThread struct {
	at   position
	open []uint64
}

func (w *writingThread) step(s *Spool, ring uint32, seq *uint64, random *rand.Rand) {
	switch {
	case len(w.open) < 3 && random.IntN(4) == 0: // a call begins
		*seq++
		*s.data.word64(offSeq) = *seq
		if len(w.open) == 0 {
			*s.data.word64(s.ringOffset(ring) + ringInflight) = *seq
		}
		w.open = append(w.open, *seq)
	case len(w.open) > 0 && random.IntN(3) == 0: // the innermost ends
		s.commit(&w.at, w.open[len(w.open)-1])
		w.open = w.open[:len(w.open)-1]
		if len(w.open) == 0 {
			*s.data.word64(s.ringOffset(ring) + ringInflight) = 0
		}
	case len(w.open) == 0 || random.IntN(4) == 0:
		*seq++
		s.commit(&w.at, *seq)
	}
}

// leave ends all calls.
func (w *writingThread) leave(s *Spool, ring uint32) {
	for ; len(w.open) > 0; w.open = w.open[:len(w.open)-1] {
		s.commit(&w.at, w.open[len(w.open)-1])
	}
	*s.data.word64(s.ringOffset(ring) + ringInflight) = 0
}

// BenchmarkCollect drains records that threads wrote in turns of a thousand, as many threads on few processors do.
func BenchmarkCollect(b *testing.B) {
	for _, rings := range []int{1, 4, 64, 1000} {
		b.Run(fmt.Sprintf("rings=%d", rings), func(b *testing.B) {
			const total = 1 << 19
			s := newWideSpool(rings, total/rings/(segmentSlots-1)+8)
			at := make([]position, rings)
			for i := range at {
				at[i] = position{s.data.load32(s.ringOffset(uint32(i)) + ringFirstSegment), 1}
			}
			for seq := uint64(1); seq <= total; seq++ {
				s.commit(&at[int(seq>>8)%rings], seq)
			}
			b.ResetTimer()
			for range b.N {
				c := NewCursor(s)
				for more := true; more; {
					_, _, more = c.Collect(false)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/total, "ns/event")
		})
	}
}

// A chain that the program's stray writes had led back to its beginning returned the same records round after round, so
// that the drainer of a running process wrote them until the disk was full.
func TestCirclesEnd(t *testing.T) {
	for name, next := range map[string]uint32{"itself": 3, "the beginning": 1, "the middle": 2} {
		s := newWideSpool(1, 1000) // far more records than a round takes
		at := position{1, 1}
		const records = 3 * (segmentSlots - 1)
		for seq := uint64(1); seq <= records; seq++ {
			s.commit(&at, seq)
		}
		last, _ := s.segmentOffset(3)
		*s.data.word32(last + segmentNext) = next
		c := NewCursor(s)
		events, after := 0, 0
		for round := range 20 {
			batch, _, _ := c.Collect(false)
			events += len(batch)
			if round > 1 {
				after += len(batch)
			}
			c.Release()
		}
		if events < records || after > 0 { // what one round takes may come again, and what follows it
			t.Errorf("a circle to %s: %d events of %d, %d of them after two rounds", name, events, records, after)
		}
	}
}
