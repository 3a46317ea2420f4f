package rules

import (
	"slices"
	"strings"
)

// Frame is a function of a call stack. A Matcher identifies frames by their addresses, so callers must pass the same
// pointer for the same frame.
type Frame struct {
	Functions []string // its name, and other ways to write it
	File      string   // source file
	Library   string   // base name of the object file
}

// Subject is the block that rules are applied to. Empty fields match no text.
type Subject struct {
	Tag     string
	Name    string
	Module  string
	Frames  []*Frame // innermost first
	Site    *Frame   // the program's own frame that allocated; nil if unknown
	Library string   // that made the call
	API     string
	Kind    string // one of Words(Kind)
	Level   string // one of Words(Level)
	Thread  string // its name, for the phase
	Lasts   string // one of Words(Lifetime)
	Size    uint64
}

// Matcher applies the rules of one set. It caches frames and must not be used from several goroutines at once.
type Matcher struct {
	set      *Set
	rules    []compiledRule
	ofFrames []frameTest // the index of each is its bit
	words    int         // of a frame's results
	frames   map[*Frame]*frameResults

	stack []uint64 // results of all frames of a subject, reused
}

// compiledRule is a rule in the matcher's form.
type compiledRule struct {
	*Rule
	bits []int // by condition: index of the frame test, -1 for none
}

// frameTest is a condition on a single frame.
type frameTest struct {
	field    Field
	patterns []Pattern
}

// frameResults are the cached results for a frame.
type frameResults struct {
	bits  []uint64
	phase phase
}

// Matcher returns a matcher of the set.
func (s *Set) Matcher() *Matcher {
	m := &Matcher{set: s, frames: make(map[*Frame]*frameResults)}
	for i := range s.Rules {
		r := compiledRule{Rule: &s.Rules[i], bits: make([]int, len(s.Rules[i].Conditions))}
		for n, c := range r.Conditions {
			r.bits[n] = -1
			switch c.Field {
			case Any, Function, File, SiteFunction, SiteFile, Library:
				r.bits[n] = len(m.ofFrames)
				m.ofFrames = append(m.ofFrames, frameTest{c.Field, c.Patterns})
			}
		}
		m.rules = append(m.rules, r)
	}
	m.words = (len(m.ofFrames) + 63) / 64
	m.stack = make([]uint64, m.words)
	return m
}

// Match returns the categories of a subject, in the order of the rules and each one once: at most one in first-match
// mode, none if no rule matches.
func (m *Matcher) Match(s *Subject) (categories []string) {
	clear(m.stack)
	for _, f := range s.Frames {
		for i, word := range m.results(f).bits {
			m.stack[i] |= word
		}
	}
	for i := range m.rules {
		r := &m.rules[i]
		if !m.holds(r, s) {
			continue
		}
		if category := r.category(s); !slices.Contains(categories, category) {
			categories = append(categories, category)
		}
		if m.set.Mode == FirstMatch {
			break
		}
	}
	return categories
}

func (m *Matcher) holds(r *compiledRule, s *Subject) bool {
	for n := range r.Conditions {
		if !m.condition(&r.Conditions[n], r.bits[n], s) {
			return false
		}
	}
	return true
}

func (m *Matcher) condition(c *Condition, bit int, s *Subject) bool {
	switch c.Field {
	case Any:
		return has(m.stack, bit) || oneOf(c.Patterns, s.Tag) || oneOf(c.Patterns, s.Name) ||
			oneOf(c.Patterns, s.Module) || oneOf(c.Patterns, s.Library) || oneOf(c.Patterns, s.API)
	case Label:
		return oneOf(c.Patterns, s.Tag) || oneOf(c.Patterns, s.Name) || oneOf(c.Patterns, s.Module)
	case Function, File:
		return has(m.stack, bit)
	case SiteFunction, SiteFile:
		return s.Site != nil && has(m.results(s.Site).bits, bit)
	case Library:
		return has(m.stack, bit) || oneOf(c.Patterns, s.Library)
	case Tag:
		return oneOf(c.Patterns, s.Tag)
	case Name:
		return oneOf(c.Patterns, s.Name)
	case Module:
		return oneOf(c.Patterns, s.Module)
	case API:
		return oneOf(c.Patterns, s.API)
	case Kind:
		return slices.Contains(c.Words, s.Kind)
	case Level:
		return slices.Contains(c.Words, s.Level)
	case Lifetime:
		return slices.Contains(c.Words, s.Lasts)
	case Phase:
		return slices.Contains(c.Words,
			phaseNames[phaseOf(s.Frames, s.Thread, func(f *Frame) phase { return m.results(f).phase })])
	}
	return !slices.ContainsFunc(c.Bounds, func(b Bound) bool { return !b.holds(s.Size) })
}

// results evaluates all conditions on a frame once.
func (m *Matcher) results(f *Frame) *frameResults {
	a := m.frames[f]
	if a == nil {
		a = &frameResults{bits: make([]uint64, m.words), phase: f.ownPhase()}
		for i := range m.ofFrames {
			if m.ofFrames[i].matches(f) {
				a.bits[i/64] |= 1 << (i % 64)
			}
		}
		m.frames[f] = a
	}
	return a
}

func (t *frameTest) matches(f *Frame) bool {
	switch t.field {
	case Function, SiteFunction:
		return t.function(f)
	case File, SiteFile:
		return oneOf(t.patterns, f.File)
	case Library:
		return oneOf(t.patterns, f.Library)
	}
	return t.function(f) || oneOf(t.patterns, f.File) || oneOf(t.patterns, f.Library)
}

func (t *frameTest) function(f *Frame) bool {
	return slices.ContainsFunc(f.Functions, func(name string) bool { return oneOf(t.patterns, name) })
}

func has(bits []uint64, n int) bool { return bits[n/64]&(1<<(n%64)) != 0 }

// oneOf reports whether a text that is known matches one of the patterns.
func oneOf(list []Pattern, text string) bool {
	if text == "" {
		return false
	}
	for i := range list {
		if list[i].matches(text) {
			return true
		}
	}
	return false
}

// category is the rule's category with the subject's names inserted.
func (r *Rule) category(s *Subject) string {
	if !strings.Contains(r.Category, "{") {
		return r.Category
	}
	function, file := "", ""
	if s.Site != nil {
		file = s.Site.File
		if len(s.Site.Functions) > 0 {
			function = s.Site.Functions[0]
		}
	}
	values := []string{s.Library, function, file, s.Tag, s.API, s.Module}
	var pairs []string
	for i, p := range placeholders {
		value := values[i]
		if value == "" {
			value = "(unknown)"
		}
		pairs = append(pairs, p, value)
	}
	return strings.NewReplacer(pairs...).Replace(r.Category)
}
