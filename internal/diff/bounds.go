package diff

import (
	"math"

	"memtrace/analyzer/report"
)

// boundsBetween compares figures of two runs of which either may have lost records.
type boundsBetween struct{ base, changed *report.Bounds }

func (d *Diff) between() boundsBetween { return boundsBetween{d.Base.Bounds, d.New.Bounds} }

// change compares one figure. A side that lacks a lower bound because it never had the figure begins at 0.
func (b boundsBetween) change(base, changed uint64, baseLower, changedLower *uint64) Change {
	c := changeOf(base, changed)
	if b.base == nil && b.changed == nil {
		return c
	}
	from, to := boundsOf(base, baseLower, b.base), boundsOf(changed, changedLower, b.changed)
	c.BaseLower, c.NewLower = &from.lower, &to.lower
	certain := c.Delta > 0 && to.lower > from.upper || c.Delta < 0 && to.upper < from.lower || c.Delta == 0 &&
		from.exact() && to.exact()
	c.Certain = &certain
	return c
}

// share compares shares at the moments of peaks. The bounds of such a share apply to the moment of the recorded peak,
// and the true peak may have been at another, so that a difference is never certain.
func (b boundsBetween) share(base, changed uint64, baseLower, changedLower *uint64) Change {
	c := b.change(base, changed, baseLower, changedLower)
	if c.Certain != nil {
		*c.Certain = false
	}
	return c
}

// interval contains a true value.
type interval struct{ lower, upper uint64 }

func (i interval) exact() bool { return i.lower == i.upper }

func boundsOf(recorded uint64, lower *uint64, b *report.Bounds) interval {
	i := interval{recorded, recorded}
	if b == nil {
		return i
	}
	i.lower = 0
	if lower != nil {
		i.lower = *lower
	}
	if !b.RecordedIsUpper {
		i.upper = math.MaxUint64
	}
	return i
}
