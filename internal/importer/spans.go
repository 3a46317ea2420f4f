package importer

import (
	"cmp"
	"slices"
)

// span is the range of addresses [start, end).
type span struct{ start, end uint64 }

// spans are ranges in order of which none touch each other.
type spans []span

// add puts a range in, and returns what of it was not there yet.
func (s *spans) add(r span) (fresh []span) {
	if r.end <= r.start {
		return nil
	}
	first, _ := slices.BinarySearchFunc(*s, r.start, func(a span, at uint64) int { return cmp.Compare(a.end, at) })
	last, at, whole := first, r.start, r
	for ; last < len(*s) && (*s)[last].start <= r.end; last++ {
		have := (*s)[last]
		if have.start > at {
			fresh = append(fresh, span{at, have.start})
		}
		at = max(at, have.end)
		whole.start, whole.end = min(whole.start, have.start), max(whole.end, have.end)
	}
	if at < r.end {
		fresh = append(fresh, span{at, r.end})
	}
	*s = slices.Replace(*s, first, last, whole)
	return fresh
}
