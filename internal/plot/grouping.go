package plot

import (
	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// layerName is the name of an owner in a picture, by the first grouping.
func layerName(h *report.History, owner uint32) string {
	return layout.KeyName(h.By[0], h.Owners[owner].Keys[0])
}

// grouping is the first of a number of groupings that divides the owners, 0 if none does.
func grouping(count int, owners []report.HistoryOwner) int {
	for by := range count {
		for _, o := range owners {
			if o.Keys[by] != owners[0].Keys[by] {
				return by
			}
		}
	}
	return 0
}

// withOwners returns a summary whose history has the first grouping that divides the owners before the others: an
// imported trace has neither categories nor modules.
func withOwners(s *report.Summary) *report.Summary {
	by := grouping(len(s.History.By), s.History.Owners)
	if by == 0 {
		return s
	}
	first := func(keys []string) []string {
		return append([]string{keys[by]}, append(append([]string(nil), keys[:by]...), keys[by+1:]...)...)
	}
	changed, h := *s, *s.History
	h.By, h.Owners = first(h.By), make([]report.HistoryOwner, len(s.History.Owners))
	for i, o := range s.History.Owners {
		h.Owners[i] = report.HistoryOwner{Keys: first(o.Keys), Frames: o.Frames}
	}
	changed.History = &h
	return &changed
}
