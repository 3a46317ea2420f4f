package analyzer

import (
	"memtrace/analyzer/callstack"
	"memtrace/analyzer/meter"
	"memtrace/analyzer/report"
	"regexp"
	"slices"
	"strings"
)

// filter decides which blocks a summary counts. It is asked once per origin, and regular expressions run once per distinct key.
type filter struct {
	devices map[int16]bool // nil: all
	exact   []*keyFilter   // all must pass
	focus   []*keyFilter   // one must pass, if there are any
	ignore  []*keyFilter   // none may pass
}

// keyFilter asks one question about an origin, in the terms of one grouping, and remembers the answers.
type keyFilter struct {
	grouping *grouping
	matches  func(r *resolver, id uint64) bool
	ids      meter.IDIndex
	answers  []bool // by number of the id
}

// keyQuestion asks about the keys of a grouping.
func keyQuestion(g *grouping, matches func(key string) bool) *keyFilter {
	return &keyFilter{grouping: g, matches: func(r *resolver, id uint64) bool { return matches(g.key(r, id)) }}
}

func (f *keyFilter) pass(r *resolver, o *origin) bool {
	id := f.grouping.id(r, o)
	n, isNew := f.ids.Number(id)
	if isNew {
		f.answers = append(f.answers, f.matches(r, id))
	}
	return f.answers[n]
}

// Selection says which blocks a summary counts; see Options.
type Selection struct {
	Devices       []int16
	Tag           string
	Library       string
	Focus, Ignore *regexp.Regexp
}

// newFilter returns nil if everything is selected.
func newFilter(o Selection) *filter {
	f := &filter{
		focus:  textFilters(o.Focus),
		ignore: textFilters(o.Ignore),
	}
	if len(o.Devices) > 0 {
		f.devices = make(map[int16]bool, len(o.Devices))
		for _, d := range o.Devices {
			f.devices[d] = true
		}
	}
	if o.Tag != "" {
		f.exact = append(f.exact, keyQuestion(findGrouping("tag"), func(key string) bool { return underTag(key, o.Tag) }))
	}
	if o.Library != "" {
		f.exact = append(f.exact, keyQuestion(findGrouping("library"), func(key string) bool { return strings.Contains(key, o.Library) }))
	}
	if f.devices == nil && f.exact == nil && f.focus == nil && f.ignore == nil {
		return nil
	}
	return f
}

// nothingKnown are keys that are no name of anything.
var nothingKnown = []string{report.Untagged, report.Unnamed, report.NoModule}

// textFilters makes one question for every grouping whose keys are names, and one for the frames of the call stack, folded or not.
func textFilters(re *regexp.Regexp) []*keyFilter {
	if re == nil {
		return nil
	}
	var list []*keyFilter
	for i := range groupings {
		if groupings[i].text {
			list = append(list, keyQuestion(&groupings[i], func(key string) bool { return !slices.Contains(nothingKnown, key) && re.MatchString(key) }))
		}
	}
	answers := make(map[*callstack.Frame]bool)
	anyFrame := func(r *resolver, id uint64) bool {
		return slices.ContainsFunc(r.stacks.Of(callstack.PairOf(id)).All, func(f *callstack.Frame) bool {
			answer, known := answers[f]
			if !known {
				answer = f.Matches(re)
				answers[f] = answer
			}
			return answer
		})
	}
	return append(list, &keyFilter{grouping: &byStack, matches: anyFrame})
}

// underTag reports whether a tag path is the wanted one or lies below it.
func underTag(tag, wanted string) bool {
	rest, ok := strings.CutPrefix(tag, wanted)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '/')
}

// narrowed reports whether the filter selects by anything but the device, so that whole-device figures no longer fit beside the blocks.
func (f *filter) narrowed() bool {
	return f != nil && (f.exact != nil || f.focus != nil || f.ignore != nil)
}

// hasDevice reports whether a device is among those asked for.
func (f *filter) hasDevice(device int16) bool {
	return f == nil || f.devices == nil || f.devices[device]
}

func (f *filter) pass(r *resolver, o *origin) bool {
	if !f.hasDevice(o.device) {
		return false
	}
	for _, k := range f.exact {
		if !k.pass(r, o) {
			return false
		}
	}
	for _, k := range f.ignore {
		if k.pass(r, o) {
			return false
		}
	}
	for _, k := range f.focus {
		if k.pass(r, o) {
			return true
		}
	}
	return len(f.focus) == 0
}
