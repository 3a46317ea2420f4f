package heap

import (
	"slices"

	"memtrace/analyzer/report"
)

const (
	heightBins     = 256 // at most; then neighbours are joined
	heightFirstNS  = 1 << 10
	heightLastTime = 1 << 62
)

// HeightSeries keeps the highest total in time intervals, from the first change on, whose width doubles when there are
// too many. No maximum is lost by that.
type HeightSeries struct {
	width   int64
	from    int64  // when the first interval begins
	live    uint64 // now
	highs   []uint64
	until   int64 // end of the last interval
	changed int64 // the latest time of a change
}

// reach makes the interval of a time the last one. Between two events nothing changes. Earlier times, as of late
// events, count there.
func (h *HeightSeries) reach(time int64) {
	if h.width == 0 {
		h.width, h.from, h.highs = heightFirstNS, max(time, 0), append(make([]uint64, 0, heightBins), 0)
	}
	time = min(max(time-h.from, 0), heightLastTime)
	for time/h.width >= heightBins {
		for i := range (len(h.highs) + 1) / 2 {
			h.highs[i] = max(h.highs[2*i], h.highs[min(2*i+1, len(h.highs)-1)])
		}
		h.highs = h.highs[:(len(h.highs)+1)/2]
		h.width *= 2
	}
	for int64(len(h.highs)) <= time/h.width {
		h.highs = append(h.highs, h.live)
	}
	h.until = h.from + h.width*int64(len(h.highs))
}

// Set records a new total from a time on.
func (h *HeightSeries) Set(live uint64, time int64) {
	if h.width == 0 || time >= h.until {
		h.reach(time)
	}
	h.live, h.changed = live, max(h.changed, time)
	last := &h.highs[len(h.highs)-1]
	*last = max(*last, live)
}

// Value returns the series up to a time, nil if nothing was ever held.
func (h *HeightSeries) Value(level string, end int64) *report.Heights {
	if h.width == 0 {
		return nil
	}
	until := *h
	until.highs = slices.Clone(h.highs)
	until.reach(end)
	return &report.Heights{Level: level, WidthNS: until.width, PeakBytes: until.highs, FromNS: until.from,
		ChangedNS: h.changed}
}

// Restart begins the first interval at a time, with the live memory.
func (h *HeightSeries) Restart(time int64) {
	if h.width > 0 {
		*h = HeightSeries{heightFirstNS, time, h.live, append(h.highs[:0], h.live), time + heightFirstNS, time}
	}
}
