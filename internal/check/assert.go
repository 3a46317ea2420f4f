package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/moment"
	"memtrace/internal/render/layout"
)

// assert holds a condition against a trace.
func (t *Trace) assert(g Gate) Result {
	switch g.Assert {
	case onlyLibrary:
		return t.onlyLibrary(g)
	case noFinding:
		return t.noFinding(g)
	}
	if t.again == nil {
		return t.result(g, Broken, "needs the trace: neither a JSON report nor a profile has this part of the run")
	}
	if g.Assert == noDriverAlloc {
		return t.noDriverAlloc(g)
	}
	return t.released(g)
}

// noDriverAlloc: from a moment on the driver gives nothing more, as where a caching allocator is warm.
func (t *Trace) noDriverAlloc(g Gate) Result {
	s, err := t.again.one(func(o *analyzer.Options) { o.At, o.From = moment.At{}, g.From })
	if err != nil {
		return t.result(g, Broken, err.Error())
	}
	count, granted := grants(s)
	r := t.result(g, Passed, "")
	r.Unit, r.Limit, r.Value = Count, &Figure{Amount{0, Count}}, &Figure{Amount{float64(count), Count}}
	if count == 0 {
		return r
	}
	r.Status = Failed
	most := func(by string) Owner {
		row := largestRow(s.Group(by, report.LevelDriver), func(r report.Row) uint64 { return r.AllocBytes })
		if row == nil {
			return Owner{}
		}
		return Owner{By: by, Name: row.Key, Bytes: row.AllocBytes}
	}
	parts := []Owner{most("library"), most("module"), most("site")}
	r.Text = fmt.Sprintf("after %s the driver granted %s", g.From, granted) + t.fill(&r, parts)
	return r
}

// grants counts what the driver gave in a summary, and says it: device memory first, of which the owners are known.
func grants(s *report.Summary) (count uint64, words string) {
	var list []string
	add := func(level report.Level, of string) {
		if level.AllocCount == 0 {
			return
		}
		count += level.AllocCount
		list = append(list, fmt.Sprintf("%s%s (%s)", layout.Plural(level.AllocCount, "request", "requests"), of,
			layout.Bytes(level.AllocBytes)))
	}
	add(s.Driver, "")
	add(s.Other[accounts["managed"]], " of managed memory")
	add(s.Other[accounts["pinned"]], " of pinned host memory")
	return count, strings.Join(list, ", ")
}

// fill ends a sentence as memtrace diff does, ": by module model.head (1.20 GiB); by site ...", with the largest of
// several groupings, and fills in their fields. An owner without a name is not known.
func (t *Trace) fill(r *Result, parts []Owner) string {
	text, about := "", r.Owner
	for _, o := range parts {
		switch {
		case o.Name == "":
			continue
		case o.By == "module":
			r.Module = o.Name
		case o.By == "site":
			r.Site = o.Name
		case r.Owner == nil:
			r.Owner = &o
		}
		bytes := layout.Bytes(o.Bytes)
		if o.BaseBytes != nil && r.Base != nil {
			bytes = layout.SignedBytes(int64(o.Bytes - *o.BaseBytes))
			if o.inAll {
				bytes += " in all"
			}
		}
		if about != nil && o.By == about.By && o.Name == about.Name {
			continue // the sentence is about it
		}
		text += map[bool]string{true: ": ", false: "; "}[text == ""] + fmt.Sprintf("by %s %s (%s)", o.By, o.Name, bytes)
	}
	t.locate(r)
	return text + "."
}

// largestRow returns the known row with most, nil without one.
func largestRow(g *report.Group, bytes func(report.Row) uint64) (best *report.Row) {
	if g == nil {
		return nil
	}
	for i := range g.Rows {
		row := &g.Rows[i]
		if report.NamesOwner(row.Key) && bytes(*row) > 0 && (best == nil || bytes(*row) > bytes(*best)) {
			best = row
		}
	}
	return best
}

// released: of what is live at a moment, a part is freed afterwards. Without another end, that is at the next mark, or
// else before the last allocation.
func (t *Trace) released(g Gate) Result {
	to := g.To
	if to.IsZero() {
		to = t.nextMark(g.From)
	}
	s, err := t.again.one(func(o *analyzer.Options) { o.At, o.From, o.To = moment.At{}, g.From, to })
	if err != nil && g.To.IsZero() { // such as no allocation afterwards
		to, _ = moment.Parse("exit")
		s, err = t.again.one(func(o *analyzer.Options) { o.At, o.From, o.To = moment.At{}, g.From, to })
	}
	if err != nil {
		return t.result(g, Broken, err.Error())
	}
	if err := hasLevel(t.Summary, t.Findings); err != nil {
		return t.result(g, Broken, err.Error())
	}
	var level *report.WindowLevel
	if s.Window != nil {
		level = s.Window.Level(t.Summary.MainLevel())
	}
	if level == nil || level.Start.Bytes == 0 {
		return t.result(g, Broken, fmt.Sprintf("nothing was live at %s, so nothing can be released", g.From))
	}
	part := 100 * float64(level.Freed.Bytes) / float64(level.Start.Bytes)
	r := t.result(g, Passed, "")
	r.Unit, r.Limit, r.Value, r.least = Percent, &Figure{g.Limit}, &Figure{Amount{part, Percent}}, true
	if part >= g.Limit.Value {
		return r
	}
	r.Status = Failed
	var parts []Owner
	for _, by := range []string{"tag", "category", "module", "site"} {
		if row := mostKept(level.By(by)); row != nil {
			parts = append(parts, Owner{By: by, Name: row.Key, Bytes: row.Kept.Bytes, BaseBytes: &row.Start.Bytes})
		}
	}
	r.Text = fmt.Sprintf("%s was released of %s that were live at %s, and %s stayed until %s", r.Value,
		layout.Bytes(level.Start.Bytes), g.From, layout.Bytes(level.Kept.Bytes), to) + t.fill(&r, parts)
	return r
}

// mostKept returns the known row with most that was not freed.
func mostKept(g *report.WindowGroup) (best *report.WindowRow) {
	if g == nil {
		return nil
	}
	for i := range g.Rows {
		row := &g.Rows[i]
		if report.KnownKey(row.Key) && row.Key != report.NoModule && row.Kept.Bytes > 0 &&
			(best == nil || row.Kept.Bytes > best.Kept.Bytes) {
			best = row
		}
	}
	return best
}

// nextMark is the first mark after another, or else the last allocation.
func (t *Trace) nextMark(from moment.At) moment.At {
	name := "teardown"
	if from.Kind == moment.Mark {
		begin, next := int64(-1), int64(-1)
		for _, m := range t.Summary.Marks {
			if m.Name == from.Name {
				begin = m.FirstTimeNS
			}
		}
		for _, m := range t.Summary.Marks {
			at := m.FirstTimeNS
			if at <= begin && m.Count > 1 {
				at = m.LastTimeNS
			}
			if begin >= 0 && at > begin && (next < 0 || at < next) {
				next, name = at, "mark:"+m.Name
			}
		}
	}
	at, _ := moment.Parse(name)
	return at
}

// onlyLibrary: no other library asked the driver for memory.
func (t *Trace) onlyLibrary(g Gate) Result {
	group := t.Summary.Group("library", report.LevelDriver)
	if group == nil {
		return t.result(g, Broken, "nothing is known by library: the trace has no CUDA memory call")
	}
	var others []report.Row
	used := make([]bool, len(g.Names))
	for _, row := range group.Rows {
		allowed := false
		for i, name := range g.Names {
			if (Subject{"library", name}).matcher()(row.Key) {
				allowed, used[i] = true, true
			}
		}
		if !allowed && row.AllocBytes > 0 {
			others = append(others, row)
		}
	}
	if i := slices.Index(used, false); i >= 0 {
		var known []string
		for _, row := range group.Rows {
			known = append(known, row.Key)
		}
		return t.result(g, Broken, g.Names[i]+": "+noSuch(Subject{"library", g.Names[i]}, known).Error())
	}
	r := t.result(g, Passed, "")
	if len(others) == 0 {
		return r
	}
	slices.SortStableFunc(others, func(a, b report.Row) int { return cmp.Compare(b.AllocBytes, a.AllocBytes) })
	r.Status = Failed
	most := others[0]
	r.Owner = &Owner{By: "library", Name: most.Key, Bytes: most.AllocBytes}
	parts := t.inside(Subject{"library", most.Key}, nil, nil)
	more := ""
	if n := len(others) - 1; n > 0 {
		more = fmt.Sprintf(", and %s", layout.Plural(uint64(n), "other library", "other libraries"))
	}
	r.Text = fmt.Sprintf("%s allocated %s in %s%s", most.Key, layout.Bytes(most.AllocBytes),
		layout.Plural(most.AllocCount, "call", "calls"), more) + t.fill(&r, parts)
	return r
}

// noFinding: the report has no finding of these names, or of these severities or worse.
func (t *Trace) noFinding(g Gate) Result {
	worst := -1
	for _, name := range g.Names {
		worst = max(worst, slices.Index(severities, name))
	}
	var found []report.Finding
	for _, f := range t.Findings {
		if at := slices.Index(severities, f.Severity); slices.Contains(g.Names, f.ID) || at >= 0 && at <= worst {
			found = append(found, f)
		}
	}
	r := t.result(g, Passed, "")
	if len(found) == 0 {
		return r
	}
	slices.SortStableFunc(found, func(a, b report.Finding) int {
		return cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity))
	})
	r.Status = Failed
	if found[0].ID == "growth" {
		t.growing(&r)
	}
	r.Text = fmt.Sprintf("%s, the first %s (%s): %s", layout.Plural(uint64(len(found)), "finding", "findings"),
		found[0].ID, found[0].Severity, strings.TrimSpace(found[0].Text))
	return r
}
