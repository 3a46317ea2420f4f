package trace

import "memtrace/internal/section"

// A reader in a bookmark: how far it came in a trace that grows, and its books. What the dictionary and the facts say
// is read again, over the headers of the events before. Names of tables begin with "read.".

// Bookmarked is a Source that can rest in a bookmark, and go on from there.
type Bookmarked interface {
	Source
	// KeepReading keeps how far the source was read, once ReadBatch has returned io.EOF. It returns false, and may keep
	// a part, where another source could not go on from there: at damage, where records were lost, at the end of a run.
	KeepReading(s *State) bool
	// GoOnReading lets reading begin where KeepReading kept; it comes before the first ReadBatch. It returns false, and
	// leaves the source of no use, where the state makes no sense.
	GoOnReading(s *State) bool
	// CameBack reports, after the first ReadBatch, whether the trace is the one that was read then, up to the same
	// place: whether its sections have the same checksums.
	CameBack() bool
}

// comingBack is where a reader is to be found again.
type comingBack struct {
	hop  section.Hop
	want section.Chain
}

// maxKeptSpans bounds the stretches of order numbers in a bookmark.
const maxKeptSpans = 1 << 16

// KeepReading implements Bookmarked.
func (r *Reader) KeepReading(s *State) bool {
	p := &r.sections.Progress
	if !r.MayGrow() || p.Torn.Stretches > 0 || p.Restored.Stretches > 0 || r.lost > 0 || r.entered != nil ||
		p.Chain.Sections == 0 {
		return false
	}
	t := s.Table("read.books")
	t.Put(uint64(p.Offset), p.Chain.Sections, uint64(p.Chain.Sum))
	for _, v := range countersOf(r) {
		t.Put(*v)
	}
	return KeepSeqs(s.Table("read.numbers"), &r.seqs)
}

// countersOf returns the counters that rise with events.
func countersOf(r *Reader) []*uint64 {
	h := &r.health
	return []*uint64{&r.watermark, &r.block.unknown, &h.Blocks, &h.Events, &h.LateEvents, &h.Repeated}
}

// GoOnReading implements Bookmarked.
func (r *Reader) GoOnReading(s *State) bool {
	t := s.Table("read.books")
	r.back = &comingBack{hop: section.Hop{Until: int64(t.Next())}, want: section.Chain{Sections: t.Next(),
		Sum: t.ID()}}
	for _, v := range countersOf(r) {
		*v = t.Next()
	}
	RestoreSeqs(s.Table("read.numbers"), &r.seqs)
	r.sections.Hop(&r.back.hop)
	return r.back.hop.Until > section.HeadSize && s.Failed() == ""
}

// CameBack implements Bookmarked.
func (r *Reader) CameBack() bool { return r.back != nil && r.back.hop.Before == r.back.want }

// KeepSeqs keeps a set of order numbers; false: it has too many stretches.
func KeepSeqs(t *Numbers, set *section.SeqSet) bool {
	last, spans := uint64(0), 0
	for lo, hi := range set.Spans() {
		t.Put(lo-last, hi-lo)
		last = hi
		spans++
	}
	return spans <= maxKeptSpans
}

// RestoreSeqs brings back what KeepSeqs kept, into an empty set.
func RestoreSeqs(t *Numbers, set *section.SeqSet) {
	for last, first := uint64(0), true; t.More(); first = false {
		lo := last + t.Next()
		hi := lo + t.Next()
		if hi < lo || lo <= last && !first {
			t.Fail()
			return
		}
		set.AddRange(lo, hi)
		last = hi
	}
}
