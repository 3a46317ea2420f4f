package plot

import (
	"math"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
)

func TestSegments(t *testing.T) {
	c := mustMake(t, "segments", Options{}, placedBlocks())
	m := c.Map
	if m.Size != 62*mib || m.Held != 22*mib+512 || m.Holes != 2 || m.Whole != 0 || m.Outside != 0 ||
		len(m.Segments) != 3 {
		t.Fatalf("%+v", m)
	}
	if s := m.Segments[0]; s.Address != 0x4000_0000 || s.Held != 512 || s.Largest != (Hole{1024, 40*mib - 1024}) ||
		s.Pin != "512 B (</text><script>\x1b, train.py:2)" {
		t.Errorf("%+v", s)
	}
	svg := picture(t, c, "svg")
	wellFormed(t, svg)
	for _, want := range []string{"Small blocks that keep large segments", "keeps 40.0 MiB<",
		">largest hole: 40.0 MiB<",
		"62.0 MiB in 3 segments, 22.0 MiB of it in blocks; 40.0 MiB free in 2 holes, 0 B in segments without blocks"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("no %q in the picture", want)
		}
	}
	want := []string{"0", "0x40000000", "41943040", "512", "1", "2", "41942016", m.Segments[0].Pin}
	if rows := mapRows(m); !slices.Equal(rows[1], want) {
		t.Errorf("rows %q", rows)
	}
	// Later the last segment has no block any more.
	later := placedBlocks()
	later.At = &report.Moment{What: "exit", TimeNS: 40}
	if c := mustMake(t, "segments", Options{}, later); c.Map.Whole != 2*mib ||
		c.Title != "The allocator's memory at exit" {
		t.Errorf("%q: %+v", c.Title, c.Map)
	}
}

// Adjacent segments that blocks may cross are joined; others are not. Blocks outside of all are counted.
func TestSegmentsThatJoin(t *testing.T) {
	s := placedBlocks()
	h := s.History
	h.Segments = []report.HistorySegment{{Died: 4, Addr: 0x1000_0000, Size: 12 * mib, Joins: true},
		{Died: 4, Addr: 0x1000_0000 + 12*mib, Size: 10 * mib, Joins: true},
		{Died: 4, Addr: 0x1000_0000 + 22*mib, Size: mib}, {Died: 4, Addr: 0x1000_0000, Size: mib, Device: 1}}
	c := mustMake(t, "segments", Options{}, s)
	if m := c.Map; len(m.Segments) != 3 || m.Segments[0].Size != 22*mib || m.Segments[0].Held != 20*mib ||
		m.Outside != 2*mib+512 || m.Whole != 2*mib || m.devices() != 2 {
		t.Errorf("%+v", m)
	}
	if svg := string(picture(t, c, "svg")); !strings.Contains(svg, ">device 1<") ||
		!strings.Contains(svg, "in no known segment: 2.00 MiB") {
		t.Error("labels are missing")
	}
}

// One segment of very many rows, and ten thousand segments, fit in the picture.
func TestSegmentsLayOut(t *testing.T) {
	one := &Map{Size: 5 << 30, Segments: []MapSegment{{Size: 5 << 30}}}
	parts, rows, _ := one.layOut()
	sum := int64(0)
	for _, p := range parts {
		sum += p.to - p.from
	}
	if rows < mapFew || rows > mapLines || sum != 5<<30 {
		t.Errorf("%d rows of %d bytes", rows, sum)
	}
	many := &Map{}
	for range 10_000 {
		many.Segments = append(many.Segments, MapSegment{Size: 2 * mib})
		many.Size += 2 * mib
	}
	parts, rows, scale := many.layOut()
	for _, p := range parts {
		if right := p.x; right > mapWidth || float64(p.to-p.from)*scale > float64(mapWidth) {
			t.Fatalf("part %+v is outside", p)
		}
	}
	if len(parts) != mapMost || rows > 200 {
		t.Errorf("%d parts in %d rows", len(parts), rows)
	}
}

func TestSegmentsOfSelections(t *testing.T) {
	none, short := placedBlocks(), placedBlocks()
	none.History.Segments, short.History.LeftOut = nil, 1
	for want, s := range map[string]*report.Summary{"no allocator of a framework": none,
		"would look like holes": short} {
		if _, err := Make("segments", []Run{{Name: "a", Summary: s}}, Options{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// An imported trace has no modules: its picture over time is divided by lines.
func TestTimelineGrouping(t *testing.T) {
	s := placedBlocks()
	s.Heights = []report.Heights{{Level: "framework", WidthNS: 50, PeakBytes: []uint64{22*mib + 512}}}
	s.History.By[0] = "module"
	for i := range s.History.Owners {
		s.History.Owners[i].Keys[0] = "(no module)"
	}
	c := mustMake(t, "timeline", Options{}, s)
	if len(c.Series) != 2 || c.Series[0].Name != "train.py:1" || !strings.HasSuffix(c.Note, "by site") ||
		s.History.By[0] != "module" {
		t.Errorf("%+v", c)
	}
}

// A trace with a time at the end of its type made the number of columns overflow, and the picture panic.
func TestTimelineUpToTheLastTime(t *testing.T) {
	for _, last := range []int64{timelineColumns - 1, timelineColumns, timelineColumns + 1, math.MaxInt64 - 1,
		math.MaxInt64} {
		h := &report.History{Level: "framework", By: []string{"tag"}, Times: []int64{0, last},
			Owners: []report.HistoryOwner{{Keys: []string{"a"}}}, Blocks: []report.HistoryBlock{{Size: 1, Died: 2},
				{Size: 2, Born: 1, Died: 2}}}
		s := &report.Summary{Heights: []report.Heights{{Level: "framework", WidthNS: last/2 + 1, PeakBytes: []uint64{1,
			3}}}, History: h}
		c := mustMake(t, "timeline", Options{}, s)
		x, bytes := c.Series[0].X, c.Series[0].Bytes
		if n := len(x); n > 2*timelineColumns || x[n-1] > last || last-x[n-1] > c.Width || bytes[0] != 1 ||
			bytes[n-1] != 3 {
			t.Errorf("up to %d there are %d columns of %d, from %d to %d, %v bytes", last, n, c.Width, x[0], x[n-1],
				bytes[n-1])
		}
		for i, one := range c.shapes()[0].x {
			if one < 0 {
				t.Fatalf("up to %d, point %d lies at %g", last, i, one)
			}
		}
		picture(t, c, "svg")
	}
}
