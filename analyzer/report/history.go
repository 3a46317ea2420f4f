package report

import (
	"math"
	"slices"
)

// History is every block of one level: when it came, when it went, and whose it is. What is live at an event, summed
// over the blocks, is the level's exactly, unless blocks were left out.
type History struct {
	Level  string
	Times  []int64  // nanoseconds since the trace's base, of each event that a block begins or ends with
	Levels []uint64 // bytes of the level behind each of these events, those of missing blocks among them
	Blocks []HistoryBlock
	Owners []HistoryOwner
	By     []string // what HistoryOwner.Keys are keys of

	// Segments are what the framework's allocator took from the driver, in the order in which it did. None where the
	// level is the driver's, or filters leave blocks out, which would look like holes.
	Segments []HistorySegment

	LeftOut      uint64 // blocks that are missing: those that held least for the shortest time
	LeftOutBytes uint64 // the largest sum of theirs that is possible at one moment
}

// Older is how many events stand for blocks that are older than the summary's window: they begin with it.
func (h *History) Older(s *Summary) int {
	if s.Window == nil || s.Window.From == "" {
		return 0
	}
	n, _ := slices.BinarySearch(h.Times, s.Window.FromNS+1)
	return n
}

// HistoryBlock is one block.
type HistoryBlock struct {
	Born, Died uint32 // events, as indexes of Times; a block that is never freed dies at len(Times)
	Size       uint64 // bytes
	Addr       uint64 // where it begins, on its device
	Owner      uint32 // index of Owners
	Device     int16
}

// HistorySegment is a range of addresses in which blocks lie.
type HistorySegment struct {
	Born, Died uint32 // events, as of a block: it is there behind all from Born on that come before Died
	Addr, Size uint64
	Device     int16
	Joins      bool // a block may reach from it into the next one, as in PyTorch's expandable segments
}

// HistoryOwner is what blocks of one origin have in common.
type HistoryOwner struct {
	Keys   []string     // in the order of By, as people read them
	Frames []StackFrame // innermost first, library noise folded away
}

// Heights are the highest bytes of a level in each of many equal stretches of time, the first of which begins with the
// trace, or with the window.
type Heights struct {
	Level     string   `json:"level"`
	WidthNS   int64    `json:"width_ns"`   // of one stretch
	PeakBytes []uint64 `json:"peak_bytes"` // by stretch; the last one may have been cut short by the end

	FromNS int64 `json:"from_ns,omitempty"` // when the first stretch begins: with the window, where there is one
}

// InMotion is the stretch from begin to end in which blocks come and go, with a little room on both sides; all of it
// where that is most of it.
func (h *History) InMotion(s *Summary, begin, end int64) (from, to int64) {
	older := h.Older(s)
	if older >= len(h.Times) {
		return begin, end
	}
	first, last := h.Times[older], h.Times[len(h.Times)-1]
	room := max((last-first)/motionRoom, 1)
	if from, to = max(begin, first-room), last+min(room, max(end-last, 0)); to-from > (end-begin)/10*9 {
		return begin, end
	}
	return from, to
}

// GrowthLine is the highest line of a growth's slope that memory is not below while it grows: what it holds at the
// beginning of the growth and at its end. There is none without growth of this level.
func (h *History) GrowthLine(t *Trend) (from, to uint64, grows bool) {
	if t == nil || t.Kind != GrowthSteady || t.Level != h.Level || t.ToTimeNS <= t.FromTimeNS {
		return 0, 0, false
	}
	slope, least := float64(t.Bytes)/float64(t.ToTimeNS-t.FromTimeNS), math.Inf(1)
	for i, at := range h.Times {
		if at >= t.FromTimeNS && at <= t.ToTimeNS {
			least = min(least, float64(h.Levels[i])-slope*float64(at-t.FromTimeNS))
		}
	}
	if math.IsInf(least, 1) {
		return 0, 0, false
	}
	from = uint64(max(least, 0))
	return from, from + t.Bytes, true
}

// motionRoom is the part of a stretch in motion that is left free beside it, as a divisor.
const motionRoom = 100

// PeakEvent is the first event behind which most is live.
func (h *History) PeakEvent() uint32 {
	change := make([]int64, len(h.Times)+1)
	for _, b := range h.Blocks {
		change[b.Born] += int64(b.Size)
		change[b.Died] -= int64(b.Size)
	}
	best, live, most := 0, int64(0), int64(0)
	for i := range h.Times {
		if live += change[i]; live > most {
			most, best = live, i
		}
	}
	return uint32(best)
}
