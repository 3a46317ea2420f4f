package cli

import (
	"slices"
	"strings"

	"memtrace/analyzer"
)

// timelineGroupings are what --view timeline can be divided by.
func timelineGroupings() []string { return append(groupingNames(), analyzer.ByUse) }

// TakeBy takes --by for the timeline, which is the one view that can be divided otherwise.
func (v *ViewFlags) TakeBy(s *QueryFlags) error {
	if !v.Has("timeline") {
		return nil
	}
	v.timeline = ByCategory
	switch {
	case len(s.By) == 0:
		return nil
	case len(v.Names) > 1:
		return UsageErrorf("--by divides --view timeline alone: leave out the other views, or --by")
	case len(s.By) > 1:
		return UsageErrorf("--view timeline is divided by one grouping; got %s", strings.Join(s.By, ", "))
	case !slices.Contains(timelineGroupings(), s.By[0]):
		return UsageErrorf("--by %s: choose from %s", s.By[0], strings.Join(timelineGroupings(), ", "))
	}
	v.timeline, s.By = s.By[0], nil
	return nil
}
