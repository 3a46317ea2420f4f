package plot

import (
	"cmp"
	"slices"

	"memtrace/analyzer/report"
)

const (
	timelineColumns = 640 // one for each pixel of the plot
	timelineLayers  = 7   // in addition to the rest
)

// stacked divides a level over time by the first key of its history: each column shows its highest moment. The layers
// that hold most at the peak and over time are separate. positions are the events' positions on the axis, which goes
// from begin to end.
func stacked(h *report.History, positions []int64, begin, end int64) (layers []Series, width int64) {
	width = max((end-begin)/timelineColumns, 1)
	names, of, rest := layersOf(h, positions, end)
	layers = make([]Series, len(names))
	columns := int((end - begin) / width)
	if (end-begin)%width > 0 {
		columns++
	}
	for i, name := range names {
		layers[i] = Series{Name: name, X: make([]int64, columns), Bytes: make([]int64, columns),
			Rest: rest && i == timelineLayers}
	}
	changes := make([]int64, len(h.Times)) // by event: 1 + the block that begins, or minus that of one that ends
	for i, b := range h.Blocks {
		changes[b.Born] = int64(i) + 1
		if int(b.Died) < len(changes) {
			changes[b.Died] = -int64(i) - 1
		}
	}
	now, total, e := make([]int64, len(names)), int64(0), 0
	apply := func(change int64) {
		block, sign := change-1, int64(1)
		if change < 0 {
			block, sign = -change-1, -1
		}
		b := &h.Blocks[block]
		now[of[b.Owner]] += sign * signed(b.Size)
		total += sign * signed(b.Size)
	}
	for c := range columns {
		highest, held := total, slices.Clone(now)
		for ; e < len(changes) && (positions[e] < begin+int64(c+1)*width || c == columns-1); e++ {
			if apply(changes[e]); total > highest {
				highest = total
				copy(held, now)
			}
		}
		for i := range layers {
			layers[i].X[c], layers[i].Bytes[c] = begin+int64(c)*width, held[i]
		}
	}
	return layers, width
}

// layersOf names the layers, returns each owner's, and reports whether the last one joins all others.
func layersOf(h *report.History, positions []int64, end int64) (names []string, of []int, rest bool) {
	weight := map[string]float64{}
	for _, b := range h.Blocks {
		until := end
		if int(b.Died) < len(positions) {
			until = positions[b.Died]
		}
		weight[layerName(h, b.Owner)] += float64(b.Size) * float64(until-positions[b.Born])
	}
	for name := range weight {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a, b))
	})
	rest = len(names) > timelineLayers+1
	if rest {
		names = append(names[:timelineLayers:timelineLayers], moreName(len(names)-timelineLayers))
	}
	of = make([]int, len(h.Owners))
	for i := range h.Owners {
		if of[i] = slices.Index(names, layerName(h, uint32(i))); of[i] < 0 {
			of[i] = len(names) - 1
		}
	}
	return names, of, rest
}

// eventNumbers are the positions of events on an axis of events.
func eventNumbers(h *report.History) []int64 {
	list := make([]int64, len(h.Times))
	for i := range list {
		list[i] = int64(i)
	}
	return list
}
