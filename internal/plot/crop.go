package plot

import (
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// crop labels the axis with the part of the run that a picture shows, and returns its end: after the last change and
// the last time that memory ran out.
func (c *Chart) crop(s *report.Summary, from, to int64) int64 {
	if t := s.Training; t != nil {
		for _, o := range t.OutOfMemory {
			to = max(to, min(o.TimeNS+1, s.EndNS()))
		}
	}
	whole := " of " + layout.Duration(s.EndNS()-s.BeginNS())
	switch {
	case from > s.BeginNS():
		c.XLabel = "time since the start; memory changes from " + layout.Moment(from) + " to " + layout.Moment(to) +
			whole
	case to < s.EndNS():
		c.XLabel = "time since the start; memory changes up to " + layout.Moment(to) + whole
	}
	return to
}

// cropAll ends several runs' lines with the last change in any of them.
func (c *Chart) cropAll() {
	var end int64
	for _, s := range c.Series {
		end = max(end, s.lastChange())
	}
	for i, s := range c.Series {
		if len(s.X) > 0 {
			c.Series[i] = s.cut(s.X[0], end)
		}
	}
}

// lastChange is the end of the interval of a series' last change.
func (s *Series) lastChange() int64 {
	n := len(s.X)
	for n > 2 && s.Bytes[n-2] == s.Bytes[n-1] {
		n--
	}
	if n == len(s.X) {
		return s.X[n-1]
	}
	return s.X[n]
}

// cut is the part of a series from one position to another, at which it has its last value.
func (s Series) cut(from, to int64) Series {
	first, _ := slices.BinarySearch(s.X, from+1)
	last, _ := slices.BinarySearch(s.X, to)
	part := s
	part.X, part.Bytes = nil, nil
	if first > 0 {
		part.X, part.Bytes = append(part.X, from), append(part.Bytes, s.Bytes[first-1])
	}
	if first < last {
		part.X, part.Bytes = append(part.X, s.X[first:last]...), append(part.Bytes, s.Bytes[first:last]...)
	}
	if n := len(part.X); n > 0 && to > part.X[n-1] {
		part.X, part.Bytes = append(part.X, to), append(part.Bytes, part.Bytes[n-1])
	}
	return part
}
