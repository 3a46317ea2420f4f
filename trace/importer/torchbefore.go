package importer

import (
	"cmp"
	"maps"
	"slices"

	"memtrace/trace"
)

// torchBefore finds out what stood before a history from what stood at its end: of a piece of memory the first record
// decides, and without one it was there all the time.
type torchBefore struct {
	decided  map[uint64]struct{} // addresses of blocks
	freed    map[uint64]block    // that are older than the history
	given    map[uint64]struct{} // addresses of segments that come and go as a whole
	covered  spans               // what was mapped or unmapped of expandable segments
	returned []torchSegment      // to the driver, and older than the history
	end      []*segment
}

// torchSegment is a piece of memory that the driver gave.
type torchSegment struct {
	span
	small, expandable bool
	stack             trace.StackID
	tag               trace.StringID
}

func newTorchBefore() torchBefore {
	return torchBefore{decided: map[uint64]struct{}{}, freed: map[uint64]block{}, given: map[uint64]struct{}{}}
}

// ended takes in a segment that stood at the end.
func (b *torchBefore) ended(s *segment) {
	at := s.addr
	for i := range s.blocks {
		if one := &s.blocks[i]; one.addr != 0 {
			at = one.addr
		} else {
			one.addr = at
		}
		at += s.blocks[i].size
	}
	s.blocks = slices.DeleteFunc(s.blocks, func(one block) bool { return !one.allocated })
	b.end = append(b.end, s)
}

// observe takes in a record of the history, in order.
func (b *torchBefore) observe(e *entry) {
	switch e.action {
	case actionAlloc:
		b.decided[e.addr] = struct{}{}
	case actionFreeRequested:
		if _, known := b.decided[e.addr]; !known {
			b.decided[e.addr] = struct{}{}
			b.freed[e.addr] = block{addr: e.addr, size: cmp.Or(e.block, round(e.size)), request: e.size}
		}
	case actionSegmentAlloc:
		b.given[e.addr] = struct{}{}
	case actionSegmentFree:
		if _, known := b.given[e.addr]; !known {
			b.given[e.addr] = struct{}{}
			b.returned = append(b.returned, torchSegment{span: span{e.addr, e.addr + e.size}, tag: e.tag})
		}
	case actionSegmentMap:
		b.covered.add(span{e.addr, e.addr + e.size})
	case actionSegmentUnmap:
		for _, s := range b.covered.add(span{e.addr, e.addr + e.size}) {
			b.returned = append(b.returned, torchSegment{span: s, expandable: true, tag: e.tag})
		}
	}
}

// state returns what stood before the history, in the order of addresses.
func (b *torchBefore) state() ([]torchSegment, []block) {
	segments := b.returned
	live := slices.Collect(maps.Values(b.freed))
	for _, s := range b.end {
		for _, r := range b.older(s) {
			segments = append(segments, torchSegment{r, s.small, s.expandable, s.stack, s.tag})
		}
		for _, one := range s.blocks {
			if _, known := b.decided[one.addr]; !known {
				b.decided[one.addr] = struct{}{}
				live = append(live, one)
			}
		}
	}
	slices.SortFunc(segments, func(a, c torchSegment) int { return cmp.Compare(a.start, c.start) })
	slices.SortFunc(live, func(a, c block) int { return cmp.Compare(a.addr, c.addr) })
	return segments, live
}

// older returns what of a segment that stood at the end stood before the history.
func (b *torchBefore) older(s *segment) []span {
	whole := span{s.addr, s.addr + s.size}
	switch _, known := b.given[s.addr]; {
	case s.virtual || !s.expandable && known:
		return nil
	case s.expandable:
		return b.covered.add(whole)
	}
	b.given[s.addr] = struct{}{}
	return []span{whole}
}
