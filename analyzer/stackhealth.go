package analyzer

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"memtrace/trace"
)

// StackHealth counts the allocations of both levels by what is known of their call stacks.
type StackHealth struct {
	AllocCount  uint64            `json:"alloc_count"`
	NoneCount   uint64            `json:"without_stack"` // neither a native nor a Python stack
	PythonCount uint64            `json:"with_python"`   // with Python frames
	NativeCut   map[string]uint64 `json:"native_cut"`    // native stacks that are not whole, by the reason
	PythonCut   map[string]uint64 `json:"python_cut"`    // Python stacks that are not whole, by the reason
	CutCount    uint64            `json:"cut"`           // of which one of the two is not whole
	CallerOnly  uint64            `json:"caller_only"`   // no more than the caller was asked for
}

// cutWords are the reasons for which a stack is not whole. The other ends are as things should be.
var cutWords = map[trace.StackEnd]string{
	trace.StackDepth:       "depth",
	trace.StackNoRow:       "no unwind information",
	trace.StackUnsupported: "unsupported unwind rule",
	trace.StackBounds:      "stack bounds",
	trace.StackUnreadable:  "unreadable frame",
}

// cut says why a stack is not whole, "" if it is.
func (c *callStacks) cut(pair stackPair) string {
	var reasons []string
	if word := cutWords[c.tables.StackEnd(pair.native)]; word != "" && pair.native != 0 {
		reasons = append(reasons, word)
	}
	if frames, end := c.tables.PyStack(c.links.split(pair.python).backward); cutWords[end] != "" && len(frames) > 0 {
		reasons = append(reasons, "Python: "+cutWords[end])
	}
	return strings.Join(reasons, ", ")
}

// stackHealth counts without looking any name up.
func (c *collector) stackHealth() StackHealth {
	h := StackHealth{NativeCut: make(map[string]uint64), PythonCut: make(map[string]uint64)}
	tables := c.resolver.tables
	for _, a := range []Account{AccountDriver, AccountFramework} {
		for _, v := range c.stackCounts(a) {
			pair := pairOf(v.id)
			native := tables.Stack(pair.native)
			python, pythonEnd := tables.PyStack(c.links.split(pair.python).backward)
			nativeCut, pythonCut := "", ""
			if len(native) > 0 {
				nativeCut = cutWords[tables.StackEnd(pair.native)]
			}
			if len(python) > 0 {
				pythonCut = cutWords[pythonEnd]
				h.PythonCount += v.allocs
			}
			h.AllocCount += v.allocs
			if len(native) == 0 && len(python) == 0 {
				h.NoneCount += v.allocs
			} else if tables.StackEnd(pair.native) == trace.StackCaller {
				h.CallerOnly += v.allocs
			}
			if nativeCut != "" {
				h.NativeCut[nativeCut] += v.allocs
			}
			if pythonCut != "" {
				h.PythonCut[pythonCut] += v.allocs
			}
			if nativeCut != "" || pythonCut != "" {
				h.CutCount += v.allocs
			}
		}
	}
	return h
}

// cutMatters is the share of the allocations, in percent, from which on cut stacks are worth a note.
const cutMatters = 1

// noteCutStacks says how many stacks are not whole. Stacks that end at the caller are what was asked for.
func noteCutStacks(s *Summary, _ trace.Info) string {
	h := s.Health.Stacks
	if h.CutCount*100 <= h.AllocCount*cutMatters {
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
			deep = deep || why == cutWords[trace.StackDepth]
		}
	}
	text := fmt.Sprintf("The call stacks of %s of the allocations are not whole: %s. Their innermost frames are right.", percentOf(h.CutCount, h.AllocCount),
		strings.Join(reasons, ", "))
	if deep {
		text += " MEMTRACE_STACKS=native:N,python:N records deeper ones."
	}
	return text
}

// noteNameless says what to do about code of the program that has no names.
func noteNameless(s *Summary, _ trace.Info) string {
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
	if len(files) == 0 || len(s.Health.SymbolProblems) > 0 { // the problems say why
		return ""
	}
	return "Functions of " + strings.Join(files, ", ") + " have no names and are shown as offsets. Keep their symbols: do not strip them, or lay the separate " +
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
