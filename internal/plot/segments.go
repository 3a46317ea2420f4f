package plot

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// Map is an allocator's driver memory at one moment, with the blocks and the holes in it.
type Map struct {
	Segments []MapSegment // by device, then the largest first
	Layers   []string     // keys of the blocks' grouping, those that hold most first
	More     int          // how many have no layer of their own
	Size     int64        // bytes of all segments
	Held     int64        // in blocks
	Whole    int64        // in segments without any block
	Holes    int
	Outside  int64 // of blocks that are in no known segment
}

// MapSegment is a range of addresses.
type MapSegment struct {
	Device  int16
	Address uint64
	Size    int64
	Held    int64
	Blocks  []MapBlock
	Holes   int
	Largest Hole
	Pin     string // the blocks that keep the segment, if they are small; "" otherwise
}

// MapBlock begins At bytes after the beginning of its segment.
type MapBlock struct {
	At, Size int64
	Layer    int // of Map.Layers; -1: all others
	Owner    uint32
}

// Hole is free memory in a segment.
type Hole struct{ At, Size int64 }

// pinShare is the ratio of a segment to its blocks from which they are said to pin it.
const pinShare = 8

func segments(runs []Run, _ Options) (*Chart, error) {
	s := runs[0].Summary
	h := s.History
	switch {
	case h == nil || len(h.Blocks) == 0:
		return nil, errNothing
	case len(h.Segments) == 0:
		return nil, errors.New(
			"no allocator of a framework is known to cut blocks from segments; filters leave them out, too")
	case h.LeftOut > 0:
		return nil, errors.New("not every block is known, and those that are missing would look like holes")
	}
	event, when := h.PeakEvent(), "at the peak"
	if s.At != nil {
		event, when = eventAt(h, s.At.TimeNS), "at "+s.At.What
	}
	m := mapAt(h, event)
	if len(m.Segments) == 0 {
		return nil, errors.New("the allocator held nothing at that moment")
	}
	c := &Chart{Title: "The allocator's memory " + when, Map: m}
	c.Note = fmt.Sprintf("%s: %s in %s, %s of it in blocks; %s free in %s, %s in segments without blocks", runs[0].Name,
		sizeOf(m.Size), count(len(m.Segments), "segment"),
		sizeOf(m.Held), sizeOf(m.Size-m.Held), count(m.Holes, "hole"), sizeOf(m.Whole))
	if left := len(m.Segments) - len(m.shown()); left > 0 {
		c.Note += "; not drawn: " + count(left, "segment")
	}
	return c, nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(int64(n)) + " " + what + "s"
}

// eventAt is the last event that is not later than a time.
func eventAt(h *report.History, time int64) uint32 {
	n := sort.Search(len(h.Times), func(i int) bool { return h.Times[i] > time })
	return uint32(max(n-1, 0))
}

// mapAt assigns the blocks that are live after an event to their segments.
func mapAt(h *report.History, event uint32) *Map {
	m := &Map{Segments: segmentsAt(h, event)}
	live := make([]*report.HistoryBlock, 0, 1024)
	for i := range h.Blocks {
		if b := &h.Blocks[i]; b.Born <= event && event < b.Died {
			live = append(live, b)
		}
	}
	slices.SortFunc(live, func(a, b *report.HistoryBlock) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Addr, b.Addr))
	})
	owners := make([]report.HistoryOwner, 0, len(live))
	for _, b := range live {
		owners = append(owners, h.Owners[b.Owner])
	}
	by := grouping(len(h.By), owners)
	layer := m.layers(h, live, by)
	n := 0
	for _, b := range live {
		for n < len(m.Segments) && (m.Segments[n].Device < b.Device || m.Segments[n].Device == b.Device &&
			m.Segments[n].Address+uint64(m.Segments[n].Size) <= b.Addr) {
			n++
		}
		if n == len(m.Segments) || m.Segments[n].Device != b.Device || b.Addr < m.Segments[n].Address ||
			b.Addr-m.Segments[n].Address+b.Size > uint64(m.Segments[n].Size) {
			m.Outside += signed(b.Size)
			continue
		}
		s := &m.Segments[n]
		s.Blocks = append(s.Blocks, MapBlock{int64(b.Addr - s.Address), signed(b.Size), layer(b.Owner), b.Owner})
	}
	for i := range m.Segments {
		m.sum(&m.Segments[i], h, by)
	}
	slices.SortStableFunc(m.Segments, func(a, b MapSegment) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(b.Size, a.Size))
	})
	return m
}

// segmentsAt are the segments after an event by address; adjacent ones that blocks may cross are joined.
func segmentsAt(h *report.History, event uint32) (list []MapSegment) {
	var there []report.HistorySegment
	for _, s := range h.Segments {
		if s.Born <= event && event < s.Died && s.Size > 0 {
			there = append(there, s)
		}
	}
	slices.SortFunc(there, func(a, b report.HistorySegment) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Addr, b.Addr))
	})
	joins := false
	for _, s := range there {
		if last := len(list) - 1; last >= 0 && joins && s.Joins && list[last].Device == s.Device && list[last].Address+
			uint64(list[last].Size) == s.Addr {
			list[last].Size += signed(s.Size)
			continue
		}
		list, joins = append(list, MapSegment{Device: s.Device, Address: s.Addr, Size: signed(s.Size)}), s.Joins
	}
	return list
}

// layers names those keys that hold most, and returns the layer of an owner.
func (m *Map) layers(h *report.History, live []*report.HistoryBlock, by int) func(owner uint32) int {
	held := map[string]uint64{}
	for _, b := range live {
		held[layout.KeyName(h.By[by], h.Owners[b.Owner].Keys[by])] += b.Size
	}
	for key := range held {
		m.Layers = append(m.Layers, key)
	}
	slices.SortFunc(m.Layers, func(a, b string) int { return cmp.Or(cmp.Compare(held[b], held[a]), cmp.Compare(a, b)) })
	if len(m.Layers) > timelineLayers {
		m.Layers, m.More = m.Layers[:timelineLayers], len(m.Layers)-timelineLayers
	}
	places := map[string]int{}
	for i, key := range m.Layers {
		places[key] = i
	}
	return func(owner uint32) int {
		if i, ok := places[layout.KeyName(h.By[by], h.Owners[owner].Keys[by])]; ok {
			return i
		}
		return -1
	}
}

// sum finds a segment's holes, and the blocks that pin it.
func (m *Map) sum(s *MapSegment, h *report.History, by int) {
	end := int64(0)
	hole := func(until int64) {
		if until > end {
			s.Holes++
			if until-end > s.Largest.Size {
				s.Largest = Hole{end, until - end}
			}
		}
	}
	var most MapBlock
	for _, b := range s.Blocks {
		hole(b.At)
		end = max(end, b.At+b.Size)
		s.Held += b.Size
		if b.Size > most.Size {
			most = b
		}
	}
	hole(s.Size)
	m.Size, m.Held, m.Holes = m.Size+s.Size, m.Held+s.Held, m.Holes+s.Holes
	switch {
	case len(s.Blocks) == 0:
		m.Whole += s.Size
	case s.Held*pinShare <= s.Size:
		s.Pin = pinOf(s, h.Owners[most.Owner], h.By, by)
	}
}

// pinOf names the blocks of a segment that is mostly free: by their key, and the line that allocated them.
func pinOf(s *MapSegment, o report.HistoryOwner, all []string, by int) string {
	name := layout.KeyName(all[by], o.Keys[by])
	if site := slices.Index(all, "site"); site >= 0 && site != by && o.Keys[site] != "" {
		name += ", " + o.Keys[site]
	}
	if len(s.Blocks) == 1 {
		return sizeOf(s.Held) + " (" + name + ")"
	}
	return fmt.Sprintf("%d blocks of %s (the largest: %s)", len(s.Blocks), sizeOf(s.Held), name)
}

// mapRows are the values of a map, a segment each.
func mapRows(m *Map) [][]string {
	rows := [][]string{{"device", "address", "segment_bytes", "held_bytes", "blocks", "holes", "largest_hole_bytes",
		"pinned_by"}}
	for _, s := range m.Segments {
		rows = append(rows, []string{strconv.Itoa(int(s.Device)), fmt.Sprintf("0x%x", s.Address),
			strconv.FormatInt(s.Size, 10), strconv.FormatInt(s.Held, 10), strconv.Itoa(len(s.Blocks)),
			strconv.Itoa(s.Holes), strconv.FormatInt(s.Largest.Size, 10), s.Pin})
	}
	return rows
}
