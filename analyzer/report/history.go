package report

import (
	"math"
	"slices"
)

// History is every block of one level: its allocation, its free, and its owner. The live memory at an event, summed
// over the blocks, is exactly the level's, unless blocks were left out.
type History struct {
	Level  string
	Times  []int64  // nanoseconds since the trace's base, ascending, of each event at which a block begins or ends
	Levels []uint64 // bytes of the level after each of these events, including those of missing blocks
	Blocks []HistoryBlock
	Owners []HistoryOwner
	By     []string // what HistoryOwner.Keys are keys of

	// Segments are what the framework's allocator allocated from the driver, in that order. None if the level is the
	// driver's, or if filters leave blocks out, which would look like holes.
	Segments []HistorySegment

	LeftOut      uint64 // blocks that are missing: those that held least for the shortest time
	LeftOutBytes uint64 // the largest sum of theirs that is possible at one moment
}

// Older is the number of events of blocks that are older than the summary's window: they come first.
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
	Addr       uint64 // its address, on its device
	Requested  uint64 // bytes of it that the program asked for; Size where that is not known
	Owner      uint32 // index of Owners
	Device     int16
}

// HistorySegment is a range of addresses that contains blocks.
type HistorySegment struct {
	Born, Died uint32 // events, as of a block: it exists after all from Born on that come before Died
	Addr, Size uint64
	Device     int16
	Joins      bool // a block may reach from it into the next one, as in PyTorch's expandable segments
}

// HistoryOwner is the common properties of the blocks of one origin.
type HistoryOwner struct {
	Keys   []string     // displayed keys, in the order of By
	Frames []StackFrame // innermost first, library noise folded away
}

// Heights are the highest bytes of a level in each of many equal time intervals, the first of which begins with the
// trace, or with the window.
type Heights struct {
	Level     string   `json:"level"`
	WidthNS   int64    `json:"width_ns"`   // of one interval
	PeakBytes []uint64 `json:"peak_bytes"` // by interval; the last one may have been cut short by the end

	FromNS    int64 `json:"from_ns,omitempty"` // when the first interval begins: with the window, if there is one
	ChangedNS int64 `json:"changed_ns"`        // when the level changed last, or the first interval's begin
}

// InMotion is the interval from begin to end in which blocks are allocated and freed, with a margin on both sides; all
// of it if that is most of it.
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

// GrowthLine is the highest line of a growth's slope that memory stays above while it grows: the bytes at the beginning
// of the growth and at its end. There is none without growth of this level.
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

// motionRoom is the margin of an interval in motion, as a divisor.
const motionRoom = 100

// PeakEvent is the first event after which most is live.
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
