package plot

import (
	"fmt"
	"slices"

	"memtrace/analyzer/report"
)

// overlayColumns is how many values a run has on an axis of events.
const overlayColumns = 2000

// placed shifts a run's series for comparison with others: across events instead of time, less the run's initial
// memory, from its first allocation on.
func placed(s Series, run Run, level string, o Options) (Series, error) {
	h := run.Summary.History
	known := h != nil && h.Level == level && h.LeftOut == 0 && len(h.Blocks) > 0
	if o.Events {
		if !known {
			return s, fmt.Errorf("%s: not every block of its %s is known; leave out --axis events", run.Name,
				levelName(level))
		}
		s.X, s.Bytes = eventHeights(h)
	}
	base := int64(0)
	if o.Baseline {
		if base = s.Bytes[0]; known { // the first interval may hold more than its beginning
			base = heldAtStart(h)
		}
		peak := levelOf(run.Summary, level).PeakBytes
		s.Name = run.Name + ", peak " + report.SizeText(peak-min(peak, uint64(base)))
	}
	if first := slices.IndexFunc(s.Bytes, func(b int64) bool { return b > base }); first > 0 && o.Align {
		start := s.X[first]
		s.X, s.Bytes = s.X[first:], s.Bytes[first:]
		for j := range s.X {
			s.X[j] -= start
		}
	}
	for j := range s.Bytes {
		s.Bytes[j] -= base
	}
	return s, nil
}

// heldAtStart is the memory live when the run began: zero, if it was recorded from its beginning on.
func heldAtStart(h *report.History) (bytes int64) {
	for _, b := range h.Blocks {
		if h.Times[b.Born] == 0 && (int(b.Died) >= len(h.Times) || h.Times[b.Died] > 0) {
			bytes += signed(b.Size)
		}
	}
	return bytes
}

// eventHeights are the highest live bytes of equal numbers of events.
func eventHeights(h *report.History) (x, bytes []int64) {
	change := make([]int64, len(h.Times)+1)
	for _, b := range h.Blocks {
		change[b.Born] += signed(b.Size)
		change[b.Died] -= signed(b.Size)
	}
	width := max(1, (len(h.Times)+overlayColumns-1)/overlayColumns)
	live := int64(0)
	for i := range h.Times {
		live += change[i]
		if i%width == 0 {
			x, bytes = append(x, int64(i)), append(bytes, live)
		}
		last := len(bytes) - 1
		bytes[last] = max(bytes[last], live)
	}
	return append(x, int64(len(h.Times))), append(bytes, live)
}
