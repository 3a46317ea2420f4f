package page

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// tick is a value on an axis: its position, in percent of the axis, and its label.
type tick struct{ At, Text string }

// drawBoth draws the main levels of both sides over each other, each from its beginning on, to one scale: by iterations
// if both have them, by allocations and frees if all blocks are known, so that idle time takes no room, else by time.
func (c *diffContent) drawBoth(base, changed *report.Summary) {
	sides := []*report.Summary{base, changed}
	var outlines [2][]uint64 // the highest bytes of columns of the same width
	along, span, name := "", int64(0), func(at int64) string { return layout.Count(uint64(at)) }
	whole := func(s *report.Summary) bool {
		return s.History != nil && len(s.History.Blocks) > 0 && s.History.LeftOut == 0
	}
	first, second := iterationEvents(base), iterationEvents(changed)
	byIterations := whole(base) && whole(changed) && len(first) > 2 && len(second) > 2
	switch {
	case byIterations:
		span = int64(max(len(first), len(second)) - 1)
		for i, events := range [][]int{first, second} {
			outlines[i] = outlineAlong(sides[i].History.Levels, events, int(span))
		}
		along = "iteration by iteration up to the end of the last one"
	case whole(base) && whole(changed):
		span = int64(max(len(base.History.Times), len(changed.History.Times)))
		for i, s := range sides {
			events := make([]int, len(s.History.Times)+1)
			for e := range events {
				events[e] = e
			}
			outlines[i] = outlineAlong(s.History.Levels, events, int(span))
		}
		along = fmt.Sprintf("over %s allocations and frees", layout.Count(uint64(span)))
	case len(base.Heights) > 0 && len(changed.Heights) > 0:
		for _, s := range sides {
			span = max(span, s.Heights[0].WidthNS*int64(len(s.Heights[0].PeakBytes)))
		}
		for i, s := range sides {
			outlines[i] = spread(s.Heights[0].PeakBytes, s.Heights[0].WidthNS, span)
		}
		along, name = "over "+layout.Duration(span), layout.Duration
	}
	if len(outlines[0]) == 0 || len(outlines[1]) == 0 {
		return
	}
	c.Words = "Both runs from their first allocation, " + along + ": the base as an area, the new run as a line."
	if byIterations {
		c.Words += " The axis counts the iterations that have ended."
	}
	most := max(slices.Max(outlines[0]), slices.Max(outlines[1]), 1)
	most += most / 20 // room above the highest
	c.Lines = []diffLine{{"base", outlinePath(outlines[0], most) + fmt.Sprintf("V%dH0Z", pictureHeight)},
		{"new", outlinePath(outlines[1], most)}}
	c.Across, c.Up = ticksAlong(span, name), ticksUp(most)
	c.BasePeak, c.NewPeak = layout.Bytes(base.Main().PeakBytes), layout.Bytes(changed.Main().PeakBytes)
}

// iterationEvents are the events with which a program's iterations begin, and the one that the last one ends with.
func iterationEvents(s *report.Summary) (list []int) {
	t := s.Training
	if t == nil || t.IterationsBy == report.IterationsByNothing || t.LeftOut > 0 || s.History == nil {
		return nil
	}
	for i := range t.Iterations {
		it := &t.Iterations[i]
		if !it.Ended {
			break
		}
		if i == 0 {
			list = append(list, 0)
		}
		end, _ := slices.BinarySearch(s.History.Times, it.EndNS+1)
		list = append(list, end)
	}
	return list
}

// outlineColumns is into how many columns an outline is divided.
const outlineColumns = 500

// outlineAlong are the highest bytes of columns along a run that is divided at some events; a run of so many parts has
// the whole width, and one of fewer parts has fewer columns. levels are the bytes after each event.
func outlineAlong(levels []uint64, events []int, parts int) []uint64 {
	own := len(events) - 1
	list := make([]uint64, max(outlineColumns*own/parts, 1))
	at := func(column int) int { // the event at a column's left edge
		part, within := column*own/len(list), column*own%len(list)
		if part >= own {
			return events[own]
		}
		return events[part] + (events[part+1]-events[part])*within/len(list)
	}
	for c := range list {
		first := at(c)
		for e := max(first-1, 0); e < max(at(c+1), first+1) && e < len(levels); e++ {
			list[c] = max(list[c], levels[e])
		}
	}
	return list
}

// spread returns columns as wide as their share of a span; together they are not wider.
func spread(highs []uint64, width, span int64) []uint64 {
	high, low := bits.Mul64(outlineColumns, uint64(width)*uint64(len(highs))) // more than 64 bits in a run of 200 days
	columns, _ := bits.Div64(high, low, uint64(max(span, 1)))
	list := make([]uint64, max(columns, 1))
	for i := range list {
		first, behind := len(highs)*i/len(list), max(len(highs)*(i+1)/len(list), len(highs)*i/len(list)+1)
		list[i] = slices.Max(highs[first:behind])
	}
	return list
}

// outlinePath draws columns, each a five-hundredth of the picture's width.
func outlinePath(highs []uint64, most uint64) string {
	var path strings.Builder
	for n, bytes := range highs {
		y := pictureHeight - float64(bytes)/float64(most)*pictureHeight
		left, right := float64(n)*pictureWidth/outlineColumns, float64(n+1)*pictureWidth/outlineColumns
		fmt.Fprintf(&path, "%s%.1f %.1fL%.1f %.1f", map[bool]string{true: "M", false: "L"}[n == 0], left, y, right, y)
	}
	return path.String()
}

// ticksUp are round binary values up to most, from above.
func ticksUp(most uint64) (list []tick) {
	step := uint64(1)
	for most/step > 4 {
		step *= 2
	}
	for v := uint64(0); v <= most; v += step {
		list = append(list, tick{fmt.Sprintf("%.2f", 100-100*float64(v)/float64(most)),
			strings.NewReplacer(".00 ", " ", ".0 ", " ").Replace(layout.Bytes(v))})
	}
	return list
}

// ticksAlong are round values up to a span.
func ticksAlong(span int64, name func(int64) string) (list []tick) {
	step := int64(1)
	for i := 0; span/step > 8; i++ {
		step = step * []int64{2, 5, 2}[i%3] / []int64{1, 2, 1}[i%3]
	}
	for v := step; v <= span; v += step {
		list = append(list, tick{fmt.Sprintf("%.2f", 100*float64(v)/float64(span)), name(v)})
	}
	return list
}
