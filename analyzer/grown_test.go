package analyzer

import (
	"slices"
	"testing"

	"memtrace/analyzer/report"
)

// sizesOf are the sizes of a segment's pieces in MiB, in the order of their addresses, negative without memory, without
// the addresses at the end.
func sizesOf(first *piece) (list []int) {
	for p := first; p != nil; p = p.next {
		size := int(p.size >> 20)
		if !p.mapped {
			size = -size
		}
		list = append(list, size)
	}
	return list[:len(list)-1]
}

// A segment that grows uses the smallest hole that is large enough, and what it can grow by after all others; it gives
// back whole pages, and takes their addresses again.
func TestSegmentGrows(t *testing.T) {
	const mib = 1 << 20
	s := newSegment(report.GrowingPage)
	first := s.alloc(30 * mib)
	wants := func(step string, mapped uint64, sizes ...int) {
		t.Helper()
		if got := sizesOf(first); !slices.Equal(got, sizes) || s.mapped != mapped*mib {
			t.Errorf("%s: %d with %d MiB mapped, want %d with %d", step, got, s.mapped/mib, sizes, mapped)
		}
	}
	wants("one", 40, 30, 10)
	second, third := s.alloc(25*mib), s.alloc(15*mib)
	wants("three", 80, 30, 25, 15, 10)
	s.release(second)
	s.alloc(8 * mib)
	wants("the hole is larger than the end, which can grow", 80, 30, 8, 17, 15, 10)
	s.release(third)
	wants("what is free is one", 80, 30, 8, 42)
	s.trim()
	wants("pages are given back", 40, 30, 8, 2)
	s.alloc(41 * mib)
	wants("and taken again", 80, 30, 8, 41, 1)
	fourth := s.alloc(90 * mib)
	s.alloc(5 * mib)
	s.release(fourth)
	s.trim()
	wants("pages between blocks", 100, 30, 8, 41, 1, -80, 9, 5, 6)
	s.alloc(60 * mib)
	wants("addresses between blocks", 160, 30, 8, 41, 60, 1, -20, 9, 5, 6)
}
