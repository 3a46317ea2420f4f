package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// owner is a row of owners.
type owner struct {
	name  string
	bytes uint64
}

func (t *page) owners(p *process) {
	o := p.Owners
	what := fmt.Sprintf("owners by %s, as of %s", o.By, formatAge(t.sample.Time.Sub(o.ReadAt)))
	if o.Level == "framework" {
		what += fmt.Sprintf("; %s in blocks of %s", layout.Bytes(o.FrameworkBytes), o.frameworkName())
	}
	t.line(styleFaint, "             %s", what)
	t.overTime(o)
	list := t.ownerList(p)
	var whole, largest uint64
	for _, row := range list {
		whole += row.bytes
		largest = max(largest, row.bytes)
	}
	indent, names, wide := t.ownerNames(list)
	for i, row := range list {
		var l line
		l.add(stylePlain, "%*s%12s  %5.1f%%  ", indent, "", layout.Bytes(row.bytes), 100*float64(row.bytes)/
			float64(max(whole, 1)))
		if wide {
			l.add(styleGreen, "%s", t.bar(row.bytes, largest))
			l.add(stylePlain, "  ")
		}
		l.add(stylePlain, "%s", names[i])
		t.put(l)
	}
	if len(list) == 0 {
		t.line(styleFaint, "             nothing is live")
	}
	t.remarks(p)
}

// overTime draws the main level since its first allocation in one line.
func (t *page) overTime(o *ownership) {
	const indent, most, least = 13, 40, 8
	if o.heights == nil {
		return
	}
	words := fmt.Sprintf("  since %s, peak %s at %s", layout.Moment(o.heights.FromNS), layout.Bytes(o.peak.PeakBytes),
		layout.Moment(o.peak.PeakTimeNS))
	columns := min(most, len(o.heights.PeakBytes), t.width-indent-len(words))
	if columns < least {
		return
	}
	var l line
	l.add(stylePlain, "%*s", indent, "")
	l.add(styleGreen, "%s", layout.Sparkline(o.heights.PeakBytes, columns, t.ascii))
	l.add(styleFaint, "%s", words)
	t.put(l)
}

// ownerNames returns the rows' names as they fit after indent, sizes and shares, and whether bars fit as well. A narrow
// page goes without these, since names matter more.
func (t *page) ownerNames(list []owner) (indent int, names []string, wide bool) {
	const figures, bars, enough = 22, 18, 30
	indent, wide = 13, t.width >= 13+figures+bars+enough
	room := t.width - indent - figures - bars
	if !wide {
		indent = 2
		room = t.width - indent - figures
	}
	for _, row := range list {
		names = append(names, sanitize.Text(row.name))
	}
	return indent, layout.ClipApart(names, max(room, 1), t.ascii), wide
}

// ownerList turns the ledger into rows, the rest of them as one, and adds what only the device reports.
func (t *page) ownerList(p *process) []owner {
	var list []owner
	for _, r := range p.Owners.Rows {
		list = append(list, owner{ownerName(p.Owners, r), r.Bytes})
	}
	slices.SortStableFunc(list, func(a, b owner) int { return cmp.Compare(b.bytes, a.bytes) })
	if t.rows > 0 {
		list = layout.Fewer(list, t.rows, func(hidden []owner) owner {
			rest := owner{name: layout.MoreRows(p.Owners.By, len(hidden))}
			for _, row := range hidden {
				rest.bytes += row.bytes
			}
			return rest
		})
	}
	if p.Untracked != nil && *p.Untracked > 0 {
		list = append(list, owner{"not in the trace (context, code, reserves)", uint64(*p.Untracked)})
	}
	return list
}

func ownerName(o *ownership, r report.LedgerRow) string {
	name := r.Key
	if r.Label != "" {
		name = r.Label
	}
	switch r.Owner {
	case report.OwnerBlocks:
		return layout.KeyName(o.By, name)
	case report.OwnerSlack:
		return o.frameworkName() + " reserved, unused (slack)"
	case report.OwnerOutside:
		return name + " (driver)"
	}
	return name
}

// remarks returns what the rows leave out.
func (t *page) remarks(p *process) {
	o := p.Owners
	if p.Untracked != nil && *p.Untracked < 0 {
		t.line(styleYellow, "             the trace counts %s more than the device: it may be a moment ahead",
			layout.Bytes(uint64(-*p.Untracked)))
	}
	for _, name := range slices.Sorted(maps.Keys(o.OtherBytes)) {
		t.line(styleFaint, "             also %s of %s memory", layout.Bytes(o.OtherBytes[name]), name)
	}
	if o.Trend != nil {
		t.wrapped(styleYellow, "             "+layout.Growth(o.Trend, o.Level))
	}
	if o.LostRecords > 0 {
		t.wrapped(styleYellow, "             "+o.lostText())
	}
	if o.Problem != "" {
		t.wrapped(styleYellow, "             "+o.Problem)
	}
}
