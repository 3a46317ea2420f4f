package moment

import (
	"cmp"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/heap"
)

// TimelineStack is one level, divided by keys. Keys keep their value at the open interval's highest moment without a
// notification of that moment: see heap.Share.
type TimelineStack struct {
	keys   []key
	active []uint32 // keys that hold something or did in the open interval
	total  uint64
	allocs uint64 // number of the latest allocation
	epoch  uint64 // of the highest moments

	open report.TimelineBin   // the highest moment so far of the open interval, without its parts
	bins []report.TimelineBin // of the intervals that are closed

	reserved uint64 // what the allocator holds
	fresh    bool   // the highest moment is that of the present event
}

type key struct {
	heap.Share
	listed bool
}

func (s *TimelineStack) key(k uint32) *key {
	v := heap.Slot(&s.keys, int(k))
	if !v.listed {
		v.listed = true
		s.active = append(s.active, k)
	}
	return v
}

// Grow adds the bytes of a new block to a key; other parts of the block may follow; then Opened is called.
func (s *TimelineStack) Grow(k uint32, size uint64) {
	s.key(k).Grow(size, s.epoch)
	s.total += size
}

// Shrink subtracts the bytes of a freed block.
func (s *TimelineStack) Shrink(k uint32, size uint64) {
	s.key(k).Shrink(size, s.epoch)
	s.total -= size
}

// Opened is called after the parts of a new block, the allocs-th of the level. It reports whether this is the highest
// moment of the interval.
func (s *TimelineStack) Opened(time int64, allocs uint64) bool {
	s.allocs = allocs
	if s.total <= s.open.PeakBytes {
		return false
	}
	s.epoch++
	s.fresh = true
	s.open = report.TimelineBin{PeakBytes: s.total, PeakNS: time, Allocs: allocs}
	return true
}

// SetPhase names the phase of the allocation that reached the highest moment.
func (s *TimelineStack) SetPhase(phase string) { s.open.Phase = phase }

// Reserved sets the memory that the level's allocator holds after an event, from which its idle memory is computed.
func (s *TimelineStack) Reserved(bytes uint64) {
	if s.reserved = bytes; s.fresh {
		s.open.Idle, s.fresh = s.idle(), false
	}
}

func (s *TimelineStack) idle() uint64 { return max(s.reserved, s.total) - s.total }

// begin opens an interval with the live memory.
func (s *TimelineStack) begin(time int64) {
	s.epoch++
	s.open = report.TimelineBin{PeakBytes: s.total, PeakNS: time, Idle: s.idle(), Allocs: s.allocs}
}

// current is the open interval in its present state.
func (s *TimelineStack) current() report.TimelineBin {
	v := s.open
	v.Held = make([]report.TimelinePart, 0, len(s.active))
	for _, k := range s.active {
		if bytes := s.keys[k].Peak(s.epoch); bytes > 0 {
			v.Held = append(v.Held, report.TimelinePart{Key: k, Bytes: bytes})
		}
	}
	slices.SortFunc(v.Held, func(a, b report.TimelinePart) int { return cmp.Compare(a.Key, b.Key) })
	return v
}

// close ends the open interval.
func (s *TimelineStack) close() {
	s.bins = append(s.bins, s.current())
	kept := s.active[:0]
	for _, k := range s.active {
		if v := &s.keys[k]; v.Current > 0 {
			kept = append(kept, k)
		} else {
			v.listed = false
		}
	}
	s.active = kept
}

// Move moves a live block's bytes to another key; past: also in the highest moments since the block's allocation, which
// was the opened-th of the level.
func (s *TimelineStack) Move(from, to uint32, size, opened uint64, past bool) {
	if from == to || size == 0 {
		return
	}
	s.key(from).Shrink(size, s.epoch)
	s.key(to).Grow(size, s.epoch)
	if !past {
		return
	}
	if opened <= s.open.Allocs {
		s.keys[from].AtPeak -= size
		s.keys[to].AtPeak += size
	}
	for i := len(s.bins) - 1; i >= 0 && opened <= s.bins[i].Allocs; i-- {
		movePart(&s.bins[i].Held, from, to, size)
	}
}

// movePart moves bytes from one key of an interval to another. The list stays in order, without keys that hold nothing.
func movePart(held *[]report.TimelinePart, from, to uint32, size uint64) {
	find := func(k uint32) (int, bool) {
		return slices.BinarySearchFunc(*held, k, func(p report.TimelinePart, k uint32) int {
			return cmp.Compare(p.Key, k)
		})
	}
	if i, found := find(from); found {
		if (*held)[i].Bytes -= size; (*held)[i].Bytes == 0 {
			*held = slices.Delete(*held, i, i+1)
		}
	}
	i, found := find(to)
	if !found {
		*held = slices.Insert(*held, i, report.TimelinePart{Key: to})
	}
	(*held)[i].Bytes += size
}

// Bins are the intervals, the open one last.
func (s *TimelineStack) Bins() []report.TimelineBin {
	list := make([]report.TimelineBin, 0, len(s.bins)+1)
	for _, b := range s.bins {
		b.Held = slices.Clone(b.Held)
		list = append(list, b)
	}
	return append(list, s.current())
}
