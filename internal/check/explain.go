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
func (t *Trace) explain(r *Result, g Gate, base *report.Summary, v figure) {
	switch kind := g.Subject.Kind; {
	case kind == "growth":
		t.growing(r)
	case accounts[kind] != "":
		r.Text = r.overLimit(kind+" memory is", "") + "."
	case g.Subject.Name != "":
		t.explainOwner(r, t.named(g.Subject), base, v)
	case kind == "requested":
		t.explainRequested(r, base)
	case base != nil && r.Base != nil && r.Base.Value < r.Value.Value:
		t.explainDifference(r, base)
	default:
		t.explainPeak(r)
	}
}

// overLimit is "pinned memory is 5.00 GiB, 1.00 GiB over the limit of 4.00 GiB; it was 3.00 GiB", without its end.
func (r *Result) overLimit(what, when string) string {
	over := Amount{r.Value.Value - r.Limit.Value, r.Value.Unit}
	text := fmt.Sprintf("%s %s%s, %s over the limit of %s", what, r.Value, when, over, r.Limit)
	if r.Base != nil {
		text += fmt.Sprintf("; it was %s", r.Base)
	}
	return text
}

// explainRequested says how much was requested, and of the blocks that this was for who grew, or who holds most.
func (t *Trace) explainRequested(r *Result, base *report.Summary) {
	limited := r.overLimit("requested memory is", "")
	if grew := base != nil && r.Base != nil && r.Base.Value < r.Value.Value; grew {
		t.explainDifference(r, base)
		r.Text = limited + ". " + r.Text
		return
	}
	r.Text = limited + t.fill(r, t.largestHolders())
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
	if r.Kind == KindMax && r.Unit == Bytes && r.Gate != "requested" {
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

// largestHolders are the owners that hold most at the peak.
func (t *Trace) largestHolders() (parts []Owner) {
	s := t.Summary
	peak := func(row report.Row) uint64 { return row.PeakBytes }
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
	return parts
}

// explainPeak says how high a peak is, and who holds it.
func (t *Trace) explainPeak(r *Result) {
	s := t.Summary
	level := s.MainLevel()
	if level == report.LevelFramework {
		level = layout.FrameworkName(s.Versions)
	}
	what := layout.UpperFirst(level) + " peak is"
	if s.At != nil {
		what = layout.UpperFirst(level) + " memory at " + s.At.What + " is"
	}
	r.Text = r.overLimit(what, "") + t.fill(r, t.largestHolders())
}

// explainOwner says how much an owner has, and where in the program most of that is from.
func (t *Trace) explainOwner(r *Result, sub Subject, base *report.Summary, v figure) {
	r.Owner = &Owner{By: sub.Kind, Name: sub.Name, Bytes: wholeBytes(r.Value.Value)}
	if r.Base == nil { // the baseline does not say what the owner held
		base = nil
	}
	if base != nil {
		before := wholeBytes(r.Base.Value)
		r.Owner.BaseBytes = &before
	}
	r.Text = r.overLimit(sub.Kind+" "+sub.Name+" is", " "+v.when) + t.fill(r, t.inside(sub, base, v.own))
}

// explainedBy are the groupings that say where an owner's memory is from.
var explainedBy = []string{"module", "site"}

// part is what a module or a place has of an owner, and in all.
type part struct {
	key          string
	bytes, whole uint64
}

// inside finds the module and the place with most of an owner: of those that grew since the baseline, the one that grew
// most. own is the owner's memory alone, if it is known; else the trace is read again for what it has at the peak of
// all.
func (t *Trace) inside(sub Subject, base, own *report.Summary) (owners []Owner) {
	for _, by := range explainedBy {
		var parts []part
		switch {
		case own != nil:
			parts = t.partsOf(own, sub, by)
		case by == sub.Kind:
			parts = t.matching(sub)
		case t.again != nil:
			parts = t.crossed(sub, by)
		}
		owners = append(owners, t.largestPart(by, parts, base))
	}
	return owners
}

// partsOf are the rows of an owner's memory alone.
func (t *Trace) partsOf(own *report.Summary, sub Subject, by string) (parts []part) {
	level := t.Summary.MainLevel()
	if sub.Kind == "library" {
		level = report.LevelDriver
	}
	whole := map[string]uint64{}
	if all := t.Summary.Group(by, level); all != nil {
		for _, row := range all.Rows {
			whole[row.Key] = row.PeakBytes
		}
	}
	if group := own.Group(by, level); group != nil {
		for _, row := range group.Rows {
			parts = append(parts, part{row.Key, row.PeakBytes, whole[row.Key]})
		}
	}
	return parts
}

// matching are the modules or places that an owner is made of, at the peak of all.
func (t *Trace) matching(sub Subject) (parts []part) {
	rows, err := ownerRows(t.Summary, sub)
	if err != nil {
		return nil
	}
	for _, row := range rows {
		parts = append(parts, part{row.Key, row.PeakBytes, row.PeakBytes})
	}
	return parts
}

// crossed are the parts of an owner at the peak of all.
func (t *Trace) crossed(sub Subject, by string) (parts []part) {
	s, err := t.again.one(func(o *analyzer.Options) {
		o.Cross = []string{sub.Kind, by}
		if sub.Kind == "library" { // its calls alone: a framework's blocks are not its memory
			o.Library = sub.Name
		}
	})
	if err != nil || s.Cross == nil {
		return nil
	}
	matches := sub.matcher()
	for _, column := range s.Cross.Columns {
		parts = append(parts, part{column.Key, 0, column.Bytes})
	}
	for i := range s.Cross.Rows {
		if row := &s.Cross.Rows[i]; matches(row.Key) {
			for k, bytes := range row.Cells[:min(len(row.Cells), len(parts))] {
				parts[k].bytes += bytes
			}
		}
	}
	return parts
}

// largestPart is the part with most, or the one in which that grew most since the baseline.
func (t *Trace) largestPart(by string, parts []part, base *report.Summary) Owner {
	largest := mostOf(parts, func(p part) uint64 { return p.bytes })
	owner := Owner{By: by, Name: largest.key, Bytes: largest.bytes}
	if base == nil || base.Group(by, base.MainLevel()) == nil {
		return owner
	}
	before := map[string]uint64{}
	for _, g := range diff.New(base, t.Summary).Groups { // which matches lines that moved
		if g.By == by && g.Level == base.MainLevel() {
			for _, row := range g.Rows {
				before[row.Key] += row.PeakBytes.Base
			}
		}
	}
	grown := mostOf(parts, func(p part) uint64 { return min(p.bytes, p.whole-min(p.whole, before[p.key])) })
	if grown.key == "" {
		return owner
	}
	was := before[grown.key]
	return Owner{By: by, Name: grown.key, Bytes: grown.whole, BaseBytes: &was, inAll: grown.bytes != grown.whole}
}

// mostOf is the part of a known owner with most, without a key if none has anything.
func mostOf(parts []part, weigh func(p part) uint64) (best part) {
	most := uint64(0)
	for _, p := range parts {
		if bytes := weigh(p); bytes > most && report.NamesOwner(p.key) {
			most, best = bytes, p
		}
	}
	return best
}

// growing names the place that grows most.
func (t *Trace) growing(r *Result) {
	for _, trend := range t.Summary.Rising() {
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
