package diff

import (
	"cmp"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/profile"
)

// pair is one stable key's rows, summed up on each side.
type pair struct {
	key, baseKey      string
	label             string
	base, changed     report.Row
	inBase, inChanged bool
}

// rows compares the rows of two groups, growth first.
func (m *matching) rows(base, changed *report.Group, between boundsBetween) []Row {
	pairs := make(map[string]*pair)
	collectPairs(pairs, m.base, base, func(p *pair) (*report.Row, *bool) { return &p.base, &p.inBase })
	collectPairs(pairs, m.changed, changed, func(p *pair) (*report.Row, *bool) { return &p.changed, &p.inChanged })
	m.nameKeys(pairs)
	rows := make([]Row, 0, len(pairs))
	for _, p := range pairs {
		rows = append(rows, p.row(between))
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.PeakBytes.Delta, a.PeakBytes.Delta),
			cmp.Compare(b.LiveBytes.Delta, a.LiveBytes.Delta),
			cmp.Compare(b.AllocBytes.Delta, a.AllocBytes.Delta), cmp.Compare(b.AllocCount.Delta, a.AllocCount.Delta),
			strings.Compare(a.Key, b.Key))
	})
	return rows
}

// nameKeys names pairs of places by their keys in the runs, where each has one.
func (m *matching) nameKeys(pairs map[string]*pair) {
	was, is := single(m.base), single(m.changed)
	for name, p := range pairs {
		switch {
		case !m.places || m.together[name]:
		case p.inChanged && is[name] != "" && (!p.inBase || was[name] != ""):
			if p.key = is[name]; p.inBase && was[name] != p.key {
				p.baseKey = was[name]
			}
		case !p.inChanged && was[name] != "":
			p.key = was[name]
		}
	}
}

// single inverts a map; values of several keys are left out.
func single(names map[string]string) map[string]string {
	keys := make(map[string]string, len(names))
	for key, name := range names {
		if _, more := keys[name]; more {
			key = ""
		}
		keys[name] = key
	}
	return keys
}

func collectPairs(pairs map[string]*pair, names map[string]string, g *report.Group,
	side func(*pair) (*report.Row, *bool)) {
	if g == nil {
		return
	}
	for _, row := range g.Rows {
		key := names[row.Key]
		p := pairs[key]
		if p == nil {
			p = &pair{key: key}
			pairs[key] = p
		}
		if row.Label != "" {
			p.label = row.Label
		}
		sum, seen := side(p)
		*seen = true
		sum.PeakBytes += row.PeakBytes
		sum.LiveBytes += row.LiveBytes
		if row.PeakBytesLower != nil {
			sum.PeakBytesLower, sum.LiveBytesLower = plus(sum.PeakBytesLower, *row.PeakBytesLower),
				plus(sum.LiveBytesLower, *row.LiveBytesLower)
		}
		sum.AllocCount += row.AllocCount
		sum.AllocBytes += row.AllocBytes
	}
}

// StableKey is the part of a key that is the same in two runs of the same program.
func StableKey(by, key string) string {
	if g := profile.FindGrouping(by); g != nil && g.Stable != nil {
		return g.Stable(key)
	}
	return key
}

func (p *pair) row(between boundsBetween) Row {
	r := Row{Key: p.key, BaseKey: p.baseKey, Label: p.label,
		PeakBytes: between.share(p.base.PeakBytes, p.changed.PeakBytes, p.base.PeakBytesLower,
			p.changed.PeakBytesLower),
		LiveBytes: between.change(p.base.LiveBytes, p.changed.LiveBytes, p.base.LiveBytesLower,
			p.changed.LiveBytesLower),
		AllocCount: changeOf(p.base.AllocCount, p.changed.AllocCount),
		AllocBytes: changeOf(p.base.AllocBytes, p.changed.AllocBytes)}
	first := cmp.Or(r.PeakBytes.Delta, r.LiveBytes.Delta)
	switch {
	case first == 0:
		r.State = StateSame
	case !p.inBase || none(&p.base):
		r.State = StateNew
	case !p.inChanged || none(&p.changed):
		r.State = StateGone
	case first > 0:
		r.State = StateGrew
	default:
		r.State = StateShrank
	}
	return r
}

// none reports whether a side never had any of a row.
func none(r *report.Row) bool { return r.PeakBytes == 0 && r.LiveBytes == 0 && r.AllocCount == 0 }
