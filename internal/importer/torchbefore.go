package importer

import (
	"cmp"
	"slices"

	"memtrace/trace"
)

// torchBefore reconstructs what was live before a history from what was live at its end: for each piece of memory the
// first record decides, and without one it was live all the time.
type torchBefore struct {
	records  uint64
	decided  map[uint64]uint64   // address of a block -> number of the last record that allocates it, 0 for none
	freed    map[uint64]block    // that are older than the history
	waiting  map[uint64]block    // whose free was requested before the history, and completed in it or later
	given    map[uint64]struct{} // addresses of segments that come and go as a whole
	covered  spans               // what was mapped or unmapped of expandable segments
	returned []torchSegment      // to the driver, and older than the history
	end      []*segment
	atEnd    map[uint64]block // blocks that are allocated at the end
}

// torchSegment is a piece of memory that the driver gave.
type torchSegment struct {
	span
	small, expandable bool
	stack             stackRef
	tag               trace.StringID
}

func newTorchBefore() torchBefore {
	return torchBefore{decided: map[uint64]uint64{}, freed: map[uint64]block{}, waiting: map[uint64]block{},
		given: map[uint64]struct{}{}, atEnd: map[uint64]block{}}
}

// ended takes in a segment that was live at the end.
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
	s.blocks = slices.DeleteFunc(s.blocks, func(one block) bool { return one.state < statePending })
	b.end = append(b.end, s)
}

// observe takes in a record of the history, in order.
func (b *torchBefore) observe(e *entry) {
	b.records++
	_, known := b.decided[e.addr]
	older := block{addr: e.addr, size: e.block, request: e.size, rounded: e.block == 0}
	switch e.action {
	case actionAlloc:
		b.decided[e.addr] = b.records
	case actionFreeRequested:
		if !known {
			b.decided[e.addr] = 0
			b.freed[e.addr] = older
		}
	case actionFreeCompleted:
		if !known {
			b.decided[e.addr] = 0
			b.waiting[e.addr] = older
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

// state returns what was live before the history, in the order of addresses: segments, and blocks, of which those are
// pending whose free was requested before.
func (b *torchBefore) state(settings *allocatorSettings) ([]torchSegment, []block) {
	segments := b.returned
	var blocks []block
	for state, older := range map[state]map[uint64]block{stateAllocated: b.freed, statePending: b.waiting} {
		for _, one := range older {
			if one.state = state; one.rounded {
				one.size = settings.round(one.request)
			}
			blocks = append(blocks, one)
		}
	}
	for _, s := range b.end {
		for _, r := range b.older(s) {
			segments = append(segments, torchSegment{r, s.small, s.expandable, s.stack, s.tag})
		}
		for _, one := range s.blocks {
			if one.state == stateAllocated {
				b.atEnd[one.addr] = one
			}
			if _, known := b.decided[one.addr]; !known {
				b.decided[one.addr] = 0
				blocks = append(blocks, one)
			}
		}
	}
	slices.SortFunc(segments, func(a, c torchSegment) int { return cmp.Compare(a.start, c.start) })
	slices.SortFunc(blocks, func(a, c block) int { return cmp.Compare(a.addr, c.addr) })
	return segments, blocks
}

// older returns the part of a segment, live at the end, that was live before the history.
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
