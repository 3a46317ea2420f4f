package timeline

import (
	"cmp"
	"slices"

	"memtrace/analyzer/meter"
	"memtrace/analyzer/report"
)

// Stack is one level, divided by keys. Keys remember what they held at the open stretch's highest moment without being
// told when that is: see meter.Share.
type Stack struct {
	keys   []key
	active []uint32 // keys that hold something or did in the open stretch
	total  uint64
	allocs uint64 // number of the latest allocation
	epoch  uint64 // of the highest moments

	open report.TimelineBin   // the highest moment so far of the open stretch, without who held it
	bins []report.TimelineBin // of the stretches that are closed

	reserved uint64 // what the allocator holds
	fresh    bool   // the highest moment is that of the present event
}

type key struct {
	meter.Share
	listed bool
}

func (s *Stack) key(k uint32) *key {
	v := meter.Slot(&s.keys, int(k))
	if !v.listed {
		v.listed = true
		s.active = append(s.active, k)
	}
	return v
}

// Grow gives a key bytes of a new block, whose other parts may follow; then comes Opened.
func (s *Stack) Grow(k uint32, size uint64) {
	s.key(k).Grow(size, s.epoch)
	s.total += size
}

// Shrink takes bytes of a block that ends.
func (s *Stack) Shrink(k uint32, size uint64) {
	s.key(k).Shrink(size, s.epoch)
	s.total -= size
}

// Opened comes behind the parts of a new block, the allocs-th of the level. It reports whether this is the highest
// moment of the stretch.
func (s *Stack) Opened(time int64, allocs uint64) bool {
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
func (s *Stack) SetPhase(phase string) { s.open.Phase = phase }

// Reserved says what the level's allocator holds after an event, for what of it is idle.
func (s *Stack) Reserved(bytes uint64) {
	if s.reserved = bytes; s.fresh {
		s.open.Idle, s.fresh = s.idle(), false
	}
}

func (s *Stack) idle() uint64 { return max(s.reserved, s.total) - s.total }

// begin opens a stretch with what is live.
func (s *Stack) begin(time int64) {
	s.epoch++
	s.open = report.TimelineBin{PeakBytes: s.total, PeakNS: time, Idle: s.idle(), Allocs: s.allocs}
}

// current is the open stretch as it stands.
func (s *Stack) current() report.TimelineBin {
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

// close ends the open stretch.
func (s *Stack) close() {
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

// Move gives a live block's bytes another key; past: also in what was highest since the block's allocation, which was
// the opened-th of the level.
func (s *Stack) Move(from, to uint32, size, opened uint64, past bool) {
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

// movePart takes bytes from one key of a stretch to another. The list stays in order, without keys that hold nothing.
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

// Bins are the stretches, the open one last.
func (s *Stack) Bins() []report.TimelineBin {
	list := make([]report.TimelineBin, 0, len(s.bins)+1)
	for _, b := range s.bins {
		b.Held = slices.Clone(b.Held)
		list = append(list, b)
	}
	return append(list, s.current())
}
