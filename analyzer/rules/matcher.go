package rules

import (
	"slices"
	"strings"
)

// Frame is a function of a call stack. A Matcher knows frames by their addresses, so that whoever hands them in keeps
// one for each.
type Frame struct {
	Functions []string // its name, and other ways to write it
	File      string   // source file
	Library   string   // base name of the object file
}

// Subject is what rules are asked about. Empty fields match no text.
type Subject struct {
	Tag     string
	Name    string
	Module  string
	Frames  []*Frame // innermost first
	Site    *Frame   // where the program itself asked for the memory; nil if unknown
	Library string   // that made the call
	API     string
	Kind    string // one of Words(Kind)
	Level   string // one of Words(Level)
	Thread  string // its name, for the phase
	Lasts   string // one of Words(Lifetime)
	Size    uint64
}

// Matcher asks the rules of one set. It remembers frames and must not be used from several goroutines at once.
type Matcher struct {
	set      *Set
	rules    []asked
	ofFrames []question // the number of each is its bit
	words    int        // of a frame's answers
	frames   map[*Frame]*answers

	stack []uint64 // answers of all frames of a subject, reused
}

// asked is a rule as the matcher sees it.
type asked struct {
	*Rule
	bits []int // by condition: number of the question about frames, -1 for none
}

// question is what a condition wants to know about each frame.
type question struct {
	field    Field
	patterns []Pattern
}

// answers are what is known of a frame.
type answers struct {
	bits  []uint64
	phase phase
}

// Matcher returns a matcher of the set.
func (s *Set) Matcher() *Matcher {
	m := &Matcher{set: s, frames: make(map[*Frame]*answers)}
	for i := range s.Rules {
		r := asked{Rule: &s.Rules[i], bits: make([]int, len(s.Rules[i].Conditions))}
		for n, c := range r.Conditions {
			r.bits[n] = -1
			switch c.Field {
			case Any, Function, File, SiteFunction, SiteFile, Library:
				r.bits[n] = len(m.ofFrames)
				m.ofFrames = append(m.ofFrames, question{c.Field, c.Patterns})
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
		for i, word := range m.answers(f).bits {
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

func (m *Matcher) holds(r *asked, s *Subject) bool {
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
		return s.Site != nil && has(m.answers(s.Site).bits, bit)
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
			phaseNames[phaseOf(s.Frames, s.Thread, func(f *Frame) phase { return m.answers(f).phase })])
	}
	return !slices.ContainsFunc(c.Bounds, func(b Bound) bool { return !b.holds(s.Size) })
}

// answers asks all questions about a frame once.
func (m *Matcher) answers(f *Frame) *answers {
	a := m.frames[f]
	if a == nil {
		a = &answers{bits: make([]uint64, m.words), phase: f.said()}
		for i := range m.ofFrames {
			if m.ofFrames[i].about(f) {
				a.bits[i/64] |= 1 << (i % 64)
			}
		}
		m.frames[f] = a
	}
	return a
}

func (q *question) about(f *Frame) bool {
	switch q.field {
	case Function, SiteFunction:
		return q.function(f)
	case File, SiteFile:
		return oneOf(q.patterns, f.File)
	case Library:
		return oneOf(q.patterns, f.Library)
	}
	return q.function(f) || oneOf(q.patterns, f.File) || oneOf(q.patterns, f.Library)
}

func (q *question) function(f *Frame) bool {
	return slices.ContainsFunc(f.Functions, func(name string) bool { return oneOf(q.patterns, name) })
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

// category is the rule's category with the subject's own names in it.
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
