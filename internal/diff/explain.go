package diff

import "memtrace/analyzer/report"

// Explain chooses the groupings among which the verdict names causes.
func (d *Diff) Explain(by ...string) {
	if d.Verdict != nil {
		d.By = by
		d.Verdict = d.verdict(d.Verdict.Level)
	}
}

// Grown is the row of a grouping that grew most in bytes at the peak, repeated modules as one; nil if none did.
func (d *Diff) Grown(by, level string) *Row {
	for i := range d.Groups {
		g := &d.Groups[i]
		if g.By != by || g.Level != level {
			continue
		}
		for _, f := range g.Folded(true) { // growth first
			if f.Row.PeakBytes.Delta > 0 && report.NamesOwner(f.Row.Key) {
				return &f.Row
			}
		}
	}
	return nil
}
