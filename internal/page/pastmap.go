package page

import (
	"cmp"
	"slices"

	"memtrace/analyzer/report"
)

// segmentMap is the positions of blocks in the allocator's segments: see segmentsAt of segments.js.
type segmentMap struct {
	Segments []*mapSegment `json:"segments"`
	Outside  uint64        `json:"outside"` // bytes of blocks in no segment
}

type mapSegment struct {
	Address uint64     `json:"address"`
	Size    uint64     `json:"size"`
	Device  int16      `json:"device"`
	Held    uint64     `json:"held"` // bytes in blocks
	Hole    uint64     `json:"hole"` // the largest
	Blocks  []mapPiece `json:"blocks"`
	Holes   []mapPiece `json:"holes"`

	joins bool
}

type mapPiece struct {
	At    uint64 `json:"at"` // from the segment's beginning
	Size  uint64 `json:"size"`
	Owner uint32 `json:"owner"` // of a block
}

// segments draws the map after an event.
func (p *past) segments(event int) *segmentMap {
	m := &segmentMap{Segments: joinedSegments(p.h.Segments, event)}
	blocks := p.liveBlocks(event)
	slices.SortFunc(blocks, func(a, b *report.HistoryBlock) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Addr, b.Addr))
	})
	n := 0
	for _, b := range blocks {
		for n < len(m.Segments) && (m.Segments[n].Device < b.Device || m.Segments[n].Device == b.Device &&
			m.Segments[n].Address+m.Segments[n].Size <= b.Addr) {
			n++
		}
		if n == len(m.Segments) || m.Segments[n].Device != b.Device || b.Addr < m.Segments[n].Address ||
			b.Addr+b.Size > m.Segments[n].Address+m.Segments[n].Size {
			m.Outside += b.Size
			continue
		}
		s := m.Segments[n]
		s.Blocks = append(s.Blocks, mapPiece{b.Addr - s.Address, b.Size, b.Owner})
	}
	for _, s := range m.Segments {
		s.addHoles()
	}
	return m
}

// joinedSegments are those after an event, in the order of addresses.
func joinedSegments(all []report.HistorySegment, event int) []*mapSegment {
	var live []*mapSegment
	for _, s := range all {
		if int(s.Born) <= event && event < int(s.Died) {
			live = append(live, &mapSegment{Address: s.Addr, Size: s.Size, Device: s.Device, Blocks: []mapPiece{},
				Holes: []mapPiece{}, joins: s.Joins})
		}
	}
	slices.SortFunc(live, func(a, b *mapSegment) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Address, b.Address))
	})
	list := []*mapSegment{}
	for _, s := range live {
		if n := len(list); n > 0 && s.joins && list[n-1].joins && list[n-1].Device == s.Device && list[n-1].Address+
			list[n-1].Size == s.Address {
			list[n-1].Size += s.Size
			continue
		}
		list = append(list, s)
	}
	return list
}

func (s *mapSegment) addHoles() {
	var end uint64
	hole := func(until uint64) {
		if until > end {
			s.Holes = append(s.Holes, mapPiece{At: end, Size: until - end})
			s.Hole = max(s.Hole, until-end)
		}
	}
	for _, b := range s.Blocks {
		hole(b.At)
		end = max(end, b.At+b.Size)
		s.Held += b.Size
	}
	hole(s.Size)
}
