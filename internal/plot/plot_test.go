package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/rules"
)

// training is a run of three iterations whose names are hostile.
func training() *report.Summary {
	s := &report.Summary{Framework: report.Level{PeakBytes: 3 << 30, PeakTimeNS: 2500, AllocCount: 3},
		Driver: report.Level{PeakBytes: 4 << 30, PeakTimeNS: 2000, AllocCount: 3}}
	s.Process.DurationNS = 4000
	s.Heights = []report.Heights{
		{Level: "framework", WidthNS: 1024, PeakBytes: []uint64{0, 1 << 30, 3 << 30, 1 << 20}},
		{Level: "driver", WidthNS: 1024, PeakBytes: []uint64{2 << 30, 4 << 30, 4 << 30, 4 << 30}},
	}
	t := &report.Training{Categories: []string{"</text><script>", "\x1b[31m\nname", rules.Others},
		IterationsBy: report.IterationsByStep, Iterated: "steps"}
	for i := range uint64(3) {
		held := []uint64{i << 20, 5 << 20, 1}
		t.Iterations = append(t.Iterations, report.Iteration{Number: i + 1, Ended: true, EndNS: int64(i+1) * 1000,
			Peak: report.IterationMoment{Bytes: i<<20 + 5<<20 + 1, Held: held}, ReservedPeakBytes: 9 << 20})
	}
	t.Phases = []report.PhaseSpan{
		{FromNS: 100, ToNS: 900, Parts: []report.PhasePart{{Phase: "forward", NS: 800, Allocs: 2}}},
		{FromNS: 950, ToNS: 3000, Parts: []report.PhasePart{{Phase: "backward", NS: 10, Allocs: 1},
			{Phase: "forward", Allocs: 1}}}}
	s.Marks = []report.Mark{{Name: "</svg>\x1b\n", FirstTimeNS: 3999}}
	s.Training = t
	one := report.Categories{By: "layer", Rows: []report.Category{{Key: "a", Bytes: 900}, {Key: "b", Bytes: 90},
		{Key: "c", Bytes: 4}, {Key: rules.Others, Bytes: 6}}}
	two := report.Categories{By: "data", Rows: []report.Category{{Key: "w", Bytes: 1000}, {Key: rules.Others}},
		Untrackable: &report.Untrackable{Bytes: 500}}
	s.Categories = []report.Categories{one, two}
	return s
}

func picture(t *testing.T, c *Chart, format string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := c.Draw(&out, format); err != nil {
		t.Fatalf("%s as %s: %v", c.Kind, format, err)
	}
	return out.Bytes()
}

func mustMake(t *testing.T, kind string, o Options, summaries ...*report.Summary) *Chart {
	t.Helper()
	var runs []Run
	for i, s := range summaries {
		runs = append(runs, Run{Name: fmt.Sprintf("run %d <&>\x00", i), Summary: s, Flame: stacks()})
	}
	c, err := Make(kind, runs, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPictures draws every kind in every format: the same bytes each time, PNGs that decode, and SVGs in which a name
// is only text.
func TestPictures(t *testing.T) {
	for _, kind := range Names() {
		s := training()
		if kind == "sizes" || kind == "segments" {
			s = placedBlocks()
		}
		c := mustMake(t, kind, Options{Title: "</svg>\x1b"}, s)
		for _, format := range Formats {
			first, again := picture(t, c, format), picture(t, mustMake(t, kind, Options{Title: "</svg>\x1b"}, s),
				format)
			if !bytes.Equal(first, again) {
				t.Errorf("%s as %s: bytes differ", kind, format)
			}
			switch format {
			case "png":
				if _, err := png.Decode(bytes.NewReader(first)); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			case "svg":
				wellFormed(t, first)
			}
		}
	}
	if err := mustMake(t, "", Options{}, training()).Draw(io.Discard, "gif"); err == nil {
		t.Error("a GIF was drawn")
	}
}

func wellFormed(t *testing.T, svg []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "script" {
			t.Fatal("a name became a script")
		}
	}
}

// TestValues compares the drawn values with the summary.
func TestValues(t *testing.T) {
	s := training()
	c := mustMake(t, "timeline", Options{}, s)
	if c.Peak.Bytes != 3<<30 || c.Peak.X != 2500 || slices.Max(c.Series[0].Bytes) != 3<<30 ||
		slices.Max(c.Series[1].Bytes) != 4<<30 || len(c.Lanes) == 0 || c.Lanes[0].Name != layout.IterationLane ||
		len(c.Lanes[0].Items) != 3 {
		t.Errorf("timeline: %+v", c)
	}
	if p := c.Lanes[1]; len(c.Lanes) != 3 || p.Name != layout.Phases || len(p.Items) != 2 ||
		p.Items[0].Name != "forward" || p.Items[0].From != 100 || p.Items[0].To != 900 ||
		fmt.Sprint(c.phases()) != "[{forward 800 3} {backward 10 1}]" {
		t.Errorf("lanes: %+v", c.Lanes)
	}
	c = mustMake(t, "iterations", Options{}, s)
	for i, it := range s.Training.Iterations {
		var sum int64
		for _, one := range c.Series {
			if !one.Line {
				sum += one.Bytes[i]
			} else if one.Bytes[i] != int64(it.ReservedPeakBytes) {
				t.Errorf("iteration %d: reserved %d", i, one.Bytes[i])
			}
		}
		if sum != int64(it.Peak.Bytes) {
			t.Errorf("iteration %d: stack of %d, peak %d", i, sum, it.Peak.Bytes)
		}
	}
	c = mustMake(t, "bars", Options{}, s)
	if c.Stacks[0].Total != 1000 || c.Stacks[1].Total != 1500 ||
		c.Stacks[1].Bars[1] != (Bar{"Untrackable", 500, Untrackable}) {
		t.Errorf("bars: %+v", c.Stacks)
	}
	c = mustMake(t, "categories", Options{MinShare: 10}, s, s)
	if len(c.Panels) != 2 ||
		!slices.Equal(c.Panels[0].Bars, []Bar{{"a", 900, Plain}, {"2 more", 94, Plain},
			{"not categorized", 6, Others}}) {
		t.Errorf("categories: %+v", c.Panels)
	}
	c = mustMake(t, "overlay", Options{Align: true, Baseline: true}, s, s)
	if one := c.Series[1]; one.X[0] != 0 || one.Bytes[0] != 1<<30 || slices.Max(one.Bytes) != 3<<30 {
		t.Errorf("overlay: %+v", one)
	}
}

// TestEdges draws a single point, a hundred thousand categories, and nothing.
func TestEdges(t *testing.T) {
	point := &report.Summary{Driver: report.Level{PeakBytes: 1},
		Heights: []report.Heights{{Level: "driver", WidthNS: 1024, PeakBytes: []uint64{1}}}}
	picture(t, mustMake(t, "", Options{}, point), "png")
	many := report.Categories{By: "tag"}
	for i := range 100_000 {
		many.Rows = append(many.Rows, report.Category{Key: strings.Repeat("x", i%300) + fmt.Sprint(i), Bytes: 1})
	}
	s := &report.Summary{Categories: []report.Categories{many, many}}
	for _, kind := range []string{"categories", "bars"} {
		if n := len(picture(t, mustMake(t, kind, Options{}, s), "svg")); n > 200_000 {
			t.Errorf("%s of 100,000 tags takes %d bytes", kind, n)
		}
	}
	for _, kind := range Names() {
		if _, err := Make(kind, []Run{{Name: "empty", Summary: &report.Summary{}}}, Options{}); err == nil ||
			strings.Contains(err.Error(), "\n") || kind != KindFlame && !strings.Contains(err.Error(), "gives none") {
			t.Errorf("%s of nothing: %v", kind, err)
		}
	}
	if _, err := Make("timeline", []Run{{Name: "a", Summary: point}, {Name: "b", Summary: point}}, Options{}); err ==
		nil {
		t.Error("a timeline of two runs")
	}
}
