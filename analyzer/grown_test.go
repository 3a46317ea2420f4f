package analyzer

import (
	"fmt"
	"slices"
	"strings"
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

// A refusal was told that segments that grow give back 620 MiB, a page for each hole of a little more, where a run with
// them had 328 MiB less: blocks lie elsewhere then, and holes do not begin where pages do. What the advice says is what
// the same blocks leave in such segments.
func TestGrowingSegmentsAtRefusal(t *testing.T) {
	// Eight blocks of 55 MiB are replaced by such of 34, every other one first. In a segment that grows that leaves
	// holes of 42 MiB, from 68, 178, 288 and 398: with one, two, one and two pages.
	const count, raw, kept = 8, 55, 34
	lines := func(asked int) string {
		var text strings.Builder
		addr := func(i, mib int) string { return fmt.Sprintf("%#x", (0x1000+0x40*i+mib)<<20) }
		for i := range count {
			fmt.Fprintf(&text, "0 1 take %s %d\n1 1 block %s %d 3\n", addr(i, 0), raw, addr(i, 0), raw)
		}
		for _, i := range []int{0, 2, 4, 6, 1, 3, 5, 7} {
			fmt.Fprintf(&text, "2 1 unblock %s %d\n3 1 block %s %d 3\n", addr(i, 0), raw, addr(i, 0), kept)
		}
		fmt.Fprintf(&text, "4 1 refuse %d\n5 1 oom %d\n", asked, asked)
		return text.String()
	}
	for _, c := range []struct {
		asked int
		says  string
	}{
		{700, "expandable_segments:True gives back about 120.0 MiB; that alone is not enough, 140.0 MiB were missing."},
		{660, "expandable_segments:True gives back about 120.0 MiB."},
	} {
		s, err := Summarize(oomLines(t, lines(c.asked)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		e := &s.OOM.Events[0]
		advice := func() report.Advice {
			n := slices.IndexFunc(e.Advice, func(a report.Advice) bool { return a.Rule == "fragmentation" })
			if n < 0 {
				t.Fatalf("not advised: %+v", e.Advice)
			}
			return e.Advice[n]
		}
		if a := advice(); a.FreesBytes != 0 || strings.Contains(a.Text, "gives back") {
			t.Errorf("a figure before the blocks were replayed: %+v", a)
		}
		if !WantsGrown(s) {
			t.Fatal("the blocks are not replayed")
		}
		if err := ReadGrown(oomLines(t, lines(c.asked)), s); err != nil {
			t.Fatal(err)
		}
		if a := advice(); a.FreesBytes != 120*mib || !strings.HasSuffix(a.Text, c.says) {
			t.Errorf("%d MiB asked for: %+v", c.asked, a)
		}
	}
}
