package render

import (
	"math"
	"strings"
	"testing"

	"memtrace/analyzer/report"
)

// TestPhaseCells: letters are eighths, every phase has one, and times of a damaged trace that are longer than their
// interval do not give more letters than there is room for.
func TestPhaseCells(t *testing.T) {
	part := func(phase string, ns int64) report.PhasePart {
		return report.PhasePart{Phase: phase, NS: ns, Allocs: 1}
	}
	for _, c := range []struct {
		parts []report.PhasePart
		width int64
		want  string
	}{
		{nil, 800, ""},
		{[]report.PhasePart{part("forward", 800)}, 800, "ffffffff"},
		{[]report.PhasePart{part("forward", 200), part("backward", 310), part("optimizer", 100)}, 800, "ffbbbo"},
		{[]report.PhasePart{part("init", 0), part("forward", 800)}, 800, "ifffffff"},
		{[]report.PhasePart{part("forward", math.MaxInt64), part("backward", math.MaxInt64/8)}, 1, "ffffbbbb"},
		{[]report.PhasePart{part("data", 5)}, 0, "dddddddd"},
	} {
		if got := phaseCells(c.parts, c.width); got != c.want {
			t.Errorf("%+v of %d: %q, want %q", c.parts, c.width, got, c.want)
		}
	}
	var many []report.PhasePart
	for _, phase := range strings.Fields("init forward recompute backward optimizer data") {
		many = append(many, part(phase, math.MaxInt64/2))
	}
	if got := phaseCells(many, 1<<40); len(got) != laneCells {
		t.Errorf("%q", got)
	}
}
