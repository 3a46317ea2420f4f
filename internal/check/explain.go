package check

import (
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/diff"
	"memtrace/internal/render"
	"memtrace/internal/render/layout"
)

// explain says of a failure who grew, or without a baseline who holds most, with module and line, and fills in the
// fields for programs.
func (t *Trace) explain(r *Result, g Gate, base *report.Summary) {
	switch kind := g.Subject.Kind; {
	case kind == "growth":
		t.growing(r)
	case accounts[kind] != "":
		r.Text = r.overLimit(kind+" memory") + "."
	case g.Subject.Name != "":
		t.explainOwner(r, g, base)
	case base != nil && r.Base != nil && r.Base.Value < r.Value.Value:
		t.explainDifference(r, base)
	default:
		t.explainPeak(r)
	}
}

// overLimit is "pinned memory is 5.00 GiB, 1.00 GiB over the limit of 4.00 GiB; it was 3.00 GiB", without its end.
func (r *Result) overLimit(what string) string {
	over := Amount{r.Value.Value - r.Limit.Value, r.Value.Unit}
	text := fmt.Sprintf("%s is %s, %s over the limit of %s", what, r.Value, over, r.Limit)
	if r.Base != nil {
		text += fmt.Sprintf("; it was %s", r.Base)
	}
	return text
}

// explainDifference has the words of memtrace diff.
func (t *Trace) explainDifference(r *Result, base *report.Summary) {
	d := diff.New(base, t.Summary)
	by := []string{"module", "site"}
	for _, first := range []string{"category", "tag"} {
		if owner := t.grown(d, first); owner != nil {
			r.Owner, by = owner, slices.Insert(by, 0, first)
		}
	}
	d.Explain(by...)
	if module := t.grown(d, "module"); module != nil {
		r.Module = module.Name
	}
	site := t.grown(d, "site")
	if site != nil {
		r.Site = site.Name
	}
	t.locate(r)
	r.Text = render.DiffVerdict(d)
	if r.Kind == KindMax && r.Unit == Bytes {
		r.Text = fmt.Sprintf("%s over the limit of %s. %s", Amount{r.Value.Value - r.Limit.Value, Bytes}, r.Limit,
			r.Text)
	}
	named := func(by string) bool {
		return d.Verdict != nil && slices.ContainsFunc(d.Verdict.Causes, func(c diff.Cause) bool { return c.By == by })
	}
	if site != nil && !named("site") {
		r.Text = strings.TrimSuffix(r.Text, ".") + fmt.Sprintf("; of single places most at %s, %s to %s.", site.Name,
			layout.Bytes(*site.BaseBytes), layout.Bytes(site.Bytes))
	}
}

// grown is the row of a grouping that grew most, nil if none did.
func (t *Trace) grown(d *diff.Diff, by string) *Owner {
	row := d.Grown(by, t.Summary.MainLevel())
	if row == nil {
		return nil
	}
	return &Owner{By: by, Name: row.Key, Bytes: row.PeakBytes.New, BaseBytes: &row.PeakBytes.Base}
}

// explainPeak names the largest holders of a peak.
func (t *Trace) explainPeak(r *Result) {
	s := t.Summary
	peak := func(row report.Row) uint64 { return row.PeakBytes }
	var parts []Owner
	for _, by := range []string{"tag", "category", "module", "site"} {
		if l := s.Ledger(by); by == "module" && l != nil {
			if name, bytes, _ := l.HeavyModule(l.WholeBytes); name != "" {
				parts = append(parts, Owner{By: by, Name: name, Bytes: bytes})
				continue
			}
		}
		if row := largestRow(s.Group(by, s.MainLevel()), peak); row != nil {
			parts = append(parts, Owner{By: by, Name: row.Key, Bytes: row.PeakBytes})
		}
	}
	level := s.MainLevel()
	if level == report.LevelFramework {
		level = layout.FrameworkName(s.Versions)
	}
	r.Text = r.overLimit(layout.UpperFirst(level)+" peak") + t.fill(r, parts)
}

// explainOwner says how much an owner has, and where in the program most of that is from.
func (t *Trace) explainOwner(r *Result, g Gate, base *report.Summary) {
	sub := g.Subject
	if sub.Kind == "category" {
		if group := t.Summary.Group(sub.Kind, t.Summary.MainLevel()); group != nil {
			if name, err := categoryName(t.Summary, group, sub.Name); err == nil {
				sub.Name = name
			}
		}
	}
	r.Owner = &Owner{By: sub.Kind, Name: sub.Name, Bytes: wholeBytes(r.Value.Value)}
	if base != nil && r.Base != nil {
		before := wholeBytes(r.Base.Value)
		r.Owner.BaseBytes = &before
	}
	r.Text = r.overLimit(sub.Kind+" "+sub.Name) + t.fill(r, t.inside(sub, base))
}

// inside finds the module and the place with most of an owner, by reading the trace again: of those that grew since the
// baseline, the one that grew most.
func (t *Trace) inside(sub Subject, base *report.Summary) (parts []Owner) {
	for _, by := range []string{"module", "site"} {
		if by == sub.Kind || t.again == nil {
			continue
		}
		s, err := t.again(func(o *analyzer.Options) {
			o.Cross = []string{sub.Kind, by}
			if sub.Kind == "library" { // its calls alone: a framework's blocks are not its memory
				o.Library = sub.Name
			}
		})
		if err == nil && s.Cross != nil {
			parts = append(parts, t.largestPart(s.Cross, sub, base))
		}
	}
	return parts
}

// largestPart is the column with most of an owner, or the one in which that grew most since the baseline.
func (t *Trace) largestPart(c *report.Cross, sub Subject, base *report.Summary) Owner {
	by := c.By[1]
	name, most := largestCell(c, sub, nil)
	largest := Owner{By: by, Name: name, Bytes: most}
	if base == nil || base.Group(by, base.MainLevel()) == nil {
		return largest
	}
	before := map[string]uint64{}
	for _, row := range base.Group(by, base.MainLevel()).Rows {
		before[row.Key] += row.PeakBytes
	}
	whole := map[string]uint64{}
	for i := range c.Columns {
		whole[c.Columns[i].Key] = c.Columns[i].Bytes
	}
	name, most = largestCell(c, sub, func(key string, cell uint64) uint64 {
		return min(cell, whole[key]-min(whole[key], before[key]))
	})
	if most == 0 {
		return largest
	}
	was := before[name]
	return Owner{By: by, Name: name, Bytes: whole[name], BaseBytes: &was}
}

// largestCell is the column with most in the rows of an owner, as weigh counts it.
func largestCell(c *report.Cross, sub Subject, weigh func(key string, cell uint64) uint64) (name string, most uint64) {
	matches, sums := sub.matcher(), make([]uint64, len(c.Columns))
	for i := range c.Rows {
		if !matches(c.Rows[i].Key) {
			continue
		}
		for k, bytes := range c.Rows[i].Cells[:min(len(c.Rows[i].Cells), len(sums))] {
			sums[k] += bytes
		}
	}
	for k, bytes := range sums {
		key := c.Columns[k].Key
		if weigh != nil {
			bytes = weigh(key, bytes)
		}
		if bytes > most && report.NamesOwner(key) {
			most, name = bytes, key
		}
	}
	return name, most
}

// growing names the place that grows most.
func (t *Trace) growing(r *Result) {
	for _, trend := range t.Summary.Growing() {
		if len(trend.Owners) > 0 && r.Owner == nil {
			r.Owner = &Owner{By: "site", Name: trend.Owners[0].Site, Bytes: trend.Owners[0].Bytes}
			r.Site = trend.Owners[0].Site
		}
		if r.Text == "" {
			r.Text = layout.Growth(trend, t.Summary.MainLevel())
		}
	}
	t.locate(r)
}

// locate finds the file and line of the result's place.
func (t *Trace) locate(r *Result) {
	if t.Summary.Sites == nil || r.Site == "" {
		return
	}
	for i := range t.Summary.Sites.Places {
		if place := &t.Summary.Sites.Places[i]; place.Key == r.Site {
			for _, f := range place.Frames {
				if f.Path != "" && f.Line > 0 && (f.User || !place.User) {
					r.File, r.Line = f.Path, f.Line
					return
				}
			}
		}
	}
}
