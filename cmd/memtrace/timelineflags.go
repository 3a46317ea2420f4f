package main

import (
	"slices"
	"strings"

	"memtrace/analyzer"
	"memtrace/internal/usage"
)

// timelineGroupings are what --view timeline can be divided by.
func timelineGroupings() []string { return append(groupingNames(), analyzer.ByUse) }

// takeBy takes --by for the timeline, which is the one view that can be divided otherwise.
func (v *viewFlags) takeBy(s *summaryFlags) error {
	if !v.has("timeline") {
		return nil
	}
	v.timeline = byCategory
	switch {
	case len(s.by) == 0:
		return nil
	case len(v.names) > 1:
		return usage.Errorf("--by divides --view timeline alone: leave out the other views, or --by")
	case len(s.by) > 1:
		return usage.Errorf("--view timeline is divided by one grouping; got %s", strings.Join(s.by, ", "))
	case !slices.Contains(timelineGroupings(), s.by[0]):
		return usage.Errorf("--by %s: choose from %s", s.by[0], strings.Join(timelineGroupings(), ", "))
	}
	v.timeline, s.by = s.by[0], nil
	return nil
}
