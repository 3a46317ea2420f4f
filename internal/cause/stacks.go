package cause

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/trace"
)

// minCutPercent is the share of the allocations, in percent, from which on cut stacks are worth a note.
const minCutPercent = 1

// CutStacks reports how many stacks are truncated. Stacks that end at the caller were requested so.
func CutStacks(s *report.Summary, _ trace.Info) string {
	h := s.Health.Stacks
	if h.CutCount*100 <= h.AllocCount*minCutPercent {
		return ""
	}
	var reasons []string
	deep := false
	for _, side := range []struct {
		name string
		cut  map[string]uint64
	}{{"native", h.NativeCut}, {"Python", h.PythonCut}} {
		for _, why := range slices.Sorted(maps.Keys(side.cut)) {
			reasons = append(reasons, fmt.Sprintf("%s %s (%s)", side.name, why, percentOf(side.cut[why], h.AllocCount)))
			deep = deep || why == callstack.CutWords[trace.StackDepth]
		}
	}
	text := fmt.Sprintf("The call stacks of %s of the allocations are not whole: %s. Their innermost frames are right.",
		percentOf(h.CutCount, h.AllocCount),
		strings.Join(reasons, ", "))
	if deep {
		text += " MEMTRACE_STACKS=native:N,python:N records deeper ones."
	}
	return text
}

// Nameless suggests what to do about code of the program that has no names.
func Nameless(s *report.Summary, _ trace.Info) string {
	if s.Sites == nil {
		return ""
	}
	var files []string
	for _, place := range s.Sites.Places {
		if place.Bytes < s.Sites.WholeBytes/100 {
			break
		}
		for _, f := range place.Frames {
			if f.User && f.Nameless && f.Module != "" && !slices.Contains(files, path.Base(f.Module)) {
				files = append(files, path.Base(f.Module))
			}
		}
	}
	if len(files) == 0 || len(s.Health.SymbolProblems) > 0 { // the problems contain the reason
		return ""
	}
	return "Functions of " + strings.Join(files, ", ") +
		" have no names and are shown as offsets. Keep their symbols: do not strip them, or lay the separate " +
		"debug file under /usr/lib/debug."
}

// percentOf writes a part of a whole in percent.
func percentOf(part, whole uint64) string {
	if whole == 0 {
		return "0%"
	}
	percent := 100 * float64(part) / float64(whole)
	if percent < 10 {
		return fmt.Sprintf("%.1f%%", percent)
	}
	return fmt.Sprintf("%.0f%%", percent)
}
