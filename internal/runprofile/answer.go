package runprofile

import (
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
)

// Answer returns the report that a trace gives to these options, or an error that says what a profile lacks for it. The
// body must not be used afterwards.
func (b *Body) Answer(o *analyzer.Options) (*report.Summary, error) {
	if lacks := b.lacking(o); lacks != "" {
		return nil, fmt.Errorf("a profile has no %s; name the trace that it was made of", lacks)
	}
	s := b.Summary
	s.FromProfile = true
	wanted := o.Groupings
	if len(wanted) == 0 {
		wanted = b.By
	} else {
		s.By, s.Asked = slices.Clone(wanted), true
	}
	for _, by := range wanted {
		if s.Ledger(by) == nil {
			return nil, fmt.Errorf("a profile is not divided by %s, only by %s; name the trace that it was made of", by,
				strings.Join(groupsOf(s), ", "))
		}
	}
	pick(s, wanted)
	if !o.Training {
		s.Training = nil
	}
	if !o.Sites {
		s.Sites, s.Division, s.Function = nil, nil, nil
	}
	return s, nil
}

// NeedsBody reports whether the head of a profile is not enough to compare what these options ask of several.
func NeedsBody(o *analyzer.Options) bool {
	var plain Body // of a profile that was made with plain options
	if len(o.RuleSets) > 0 {
		plain.Rules = o.RuleSets[0].Rules.Name
	}
	return len(o.Groupings) > 0 || plain.lacking(o) != ""
}

// pick leaves these groupings, in this order.
func pick(s *report.Summary, wanted []string) {
	var groups []report.Group
	var ledgers []report.Ledger
	var categories []report.Categories
	for _, by := range wanted {
		ledgers = append(ledgers, *s.Ledger(by))
		for _, g := range s.Groups {
			if g.By == by {
				groups = append(groups, g)
			}
		}
		for _, c := range s.Categories {
			if c.By == by {
				categories = append(categories, c)
			}
		}
	}
	s.Groups, s.Ledgers, s.Categories = groups, ledgers, categories
	if s.Groups == nil {
		s.Groups = []report.Group{}
	}
}

// lacking says what a question needs that the body does not have; "" if it needs nothing.
func (b *Body) lacking(o *analyzer.Options) string {
	switch {
	case !o.At.IsZero():
		return "report of the moment " + o.At.String()
	case !o.From.IsZero() || !o.To.IsZero():
		return "report of a part of the run"
	case len(o.Devices) > 0:
		return "report of one device"
	case o.Tag != "" || o.Library != "" || o.Focus != nil || o.Ignore != nil || o.OwnerBy != "":
		return "report of a selection of the memory"
	case !slices.Equal(o.Own, b.Own):
		return "other division of code into own and libraries' (--own, MEMTRACE_OWN)"
	case len(o.Cross) > 0:
		return "crossed tables"
	case o.Timeline != "":
		return "memory over time by owner"
	case o.HistoryBlocks > 0:
		return "blocks"
	case o.FullStacks:
		return "unfolded call stacks"
	case o.Expected > 0:
		return "device's figure to compare with"
	}
	for _, set := range o.RuleSets {
		if set.Name != "category" || set.Rules.Name != b.Rules {
			return fmt.Sprintf("grouping %s by the rules %s", set.Name, set.Rules.Name)
		}
	}
	return ""
}
