// A Timeline keeps what was held over time while a trace is replayed: time intervals, whose width doubles when
// there are too many, with the highest moment of each and the memory by key. Its memory is bounded by MaxTimelineBins
// and MaxTimelineKeys, however long the trace is.
//
// Every value counts in the interval of the latest time so far: a late event, whose time is before that, does not
// change earlier intervals. An interval begins with the memory that was live at its start, which is its highest moment
// until there is a higher one.

package moment

import (
	"slices"

	"memtrace/analyzer/report"
)

const (
	// MaxTimelineBins is how many intervals there are at most; then neighbours are joined.
	MaxTimelineBins = 1024
	// MaxTimelineKeys is the number of separate keys; later ones share the last one.
	MaxTimelineKeys = 4096

	firstWidth = 1 << 10 // nanoseconds
	lastTime   = 1 << 62
)

// Timeline is one axis of time, with everything that is drawn over it.
type Timeline struct {
	width, from int64
	Stacks      []*TimelineStack
	lines       []line
	lanes       []report.TimelineLane // by interval; the last one is open
	phase       phase
}

// line is one figure.
type line struct {
	now   uint64
	highs []uint64 // by interval
}

// NewTimeline returns a timeline with the given number of stacks that begins at a time.
func NewTimeline(stacks int, from int64) *Timeline {
	t := &Timeline{width: firstWidth, from: from, lanes: make([]report.TimelineLane, 1, MaxTimelineBins)}
	for range stacks {
		s := &TimelineStack{}
		s.begin(from)
		t.Stacks = append(t.Stacks, s)
	}
	return t
}

// Restart restarts the timeline at a time, with the memory that is live now.
func (t *Timeline) Restart(from int64) {
	t.width, t.from = firstWidth, from
	t.lanes, t.phase = append(t.lanes[:0], report.TimelineLane{}), phase{}
	for _, s := range t.Stacks {
		s.bins = nil
		s.begin(from)
	}
	for i := range t.lines {
		t.lines[i].highs = append(t.lines[i].highs[:0], t.lines[i].now)
	}
}

// Reach makes the interval of a time the open one. It must be called before every change.
func (t *Timeline) Reach(time int64) {
	bin := min(max(time-t.from, 0), lastTime) / t.width
	if bin < int64(len(t.lanes)) {
		return
	}
	for _, s := range t.Stacks {
		s.close()
	}
	for bin >= MaxTimelineBins { // the one that was open is before it, also when intervals are wider
		t.join()
		bin /= 2
	}
	for int64(len(t.lanes)) <= bin {
		begin, passed := t.from+int64(len(t.lanes))*t.width, int64(len(t.lanes)) < bin
		for _, s := range t.Stacks {
			if s.begin(begin); passed {
				s.close()
			}
		}
		for i := range t.lines {
			t.lines[i].highs = append(t.lines[i].highs, t.lines[i].now)
		}
		t.lanes = append(t.lanes, report.TimelineLane{})
	}
}

// join doubles the width. All intervals must be closed.
func (t *Timeline) join() {
	t.width *= 2
	for _, s := range t.Stacks {
		s.bins = report.JoinPairs(s.bins, report.JoinBin)
	}
	for i := range t.lines {
		t.lines[i].highs = report.JoinPairs(t.lines[i].highs, higher)
	}
	t.lanes = append(t.lanes[:0], report.JoinPairs(t.lanes, report.JoinLane)...)
}

func higher(a, b uint64) uint64 { return max(a, b) }

// AddLine adds a figure, which was 0 so far, and returns its number.
func (t *Timeline) AddLine() int {
	t.lines = append(t.lines, line{highs: make([]uint64, len(t.lanes), MaxTimelineBins)})
	return len(t.lines) - 1
}

// Set gives a figure its value.
func (t *Timeline) Set(number int, value uint64) {
	l := &t.lines[number]
	l.now = value
	last := &l.highs[len(l.highs)-1]
	*last = max(*last, value)
}

// Lane returns the events of the open interval, to be updated.
func (t *Timeline) Lane() *report.TimelineLane { return &t.lanes[len(t.lanes)-1] }

// Highs are a figure's highest values by interval.
func (t *Timeline) Highs(number int) []uint64 { return slices.Clone(t.lines[number].highs) }

// Value is the timeline without levels, lines and keys.
func (t *Timeline) Value(end int64) *report.Timeline {
	lanes := slices.Clone(t.lanes)
	for i := range lanes {
		lanes[i].Phases = slices.Clone(lanes[i].Phases)
	}
	return &report.Timeline{FromNS: t.from, WidthNS: t.width, EndNS: end, Lanes: lanes, Keys: []report.TimelineKey{},
		Levels: []report.TimelineLevel{}, Lines: []report.TimelineLine{}}
}
