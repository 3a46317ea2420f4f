package profile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"memtrace/analyzer/callstack"
	"memtrace/analyzer/meter"
	"memtrace/analyzer/report"
)

// Filter decides which blocks a summary counts. It is asked once per origin, and regular expressions run once per
// distinct key.
type Filter struct {
	Devices map[int16]bool // nil: all
	Exact   []*KeyFilter   // all must pass
	Focus   []*KeyFilter   // one must pass, if there are any
	ignore  []*KeyFilter   // none may pass
}

// KeyFilter asks one question about an origin, in the terms of one grouping, and remembers the answers.
type KeyFilter struct {
	Grouping *Grouping
	matches  func(r *Resolver, id uint64) bool
	IDs      meter.IDIndex
	Answers  []bool // by number of the id
}

// keyQuestion asks about the keys of a grouping.
func keyQuestion(g *Grouping, matches func(key string) bool) *KeyFilter {
	return &KeyFilter{Grouping: g, matches: func(r *Resolver, id uint64) bool { return matches(g.Key(r, id)) }}
}

func (f *KeyFilter) pass(r *Resolver, o *Origin) bool {
	id := f.Grouping.ID(r, o)
	n, isNew := f.IDs.Number(id)
	if isNew {
		f.Answers = append(f.Answers, f.matches(r, id))
	}
	return f.Answers[n]
}

// Selection says which blocks a summary counts; see Options.
type Selection struct {
	Devices       []int16
	Tag           string
	Library       string
	Focus, Ignore *regexp.Regexp
}

// Words lists what is selected by, in the order in which people think of it.
func (o *Selection) Words() []string {
	var list []string
	for _, d := range o.Devices {
		list = append(list, fmt.Sprintf("device %d", d))
	}
	if o.Tag != "" {
		list = append(list, "tag "+o.Tag)
	}
	if o.Library != "" {
		list = append(list, "library "+o.Library)
	}
	if o.Focus != nil {
		list = append(list, "focus "+o.Focus.String())
	}
	if o.Ignore != nil {
		list = append(list, "ignore "+o.Ignore.String())
	}
	return list
}

// NewFilter returns nil if everything is selected.
func NewFilter(o Selection) *Filter {
	f := &Filter{
		Focus:  textFilters(o.Focus),
		ignore: textFilters(o.Ignore),
	}
	if len(o.Devices) > 0 {
		f.Devices = make(map[int16]bool, len(o.Devices))
		for _, d := range o.Devices {
			f.Devices[d] = true
		}
	}
	if o.Tag != "" {
		f.Exact = append(f.Exact, keyQuestion(FindGrouping("tag"), func(key string) bool {
			return underTag(key, o.Tag)
		}))
	}
	if o.Library != "" {
		f.Exact = append(f.Exact, keyQuestion(FindGrouping("library"), func(key string) bool {
			return strings.Contains(key, o.Library)
		}))
	}
	if f.Devices == nil && f.Exact == nil && f.Focus == nil && f.ignore == nil {
		return nil
	}
	return f
}

// nothingKnown are keys that are no name of anything.
var nothingKnown = []string{report.Untagged, report.Unnamed, report.NoModule}

// textFilters makes one question for every grouping whose keys are names, and one for the frames of the call stack,
// folded or not.
func textFilters(re *regexp.Regexp) []*KeyFilter {
	if re == nil {
		return nil
	}
	var list []*KeyFilter
	for i := range groupings {
		if groupings[i].text {
			list = append(list, keyQuestion(&groupings[i], func(key string) bool {
				return !slices.Contains(nothingKnown, key) && re.MatchString(key)
			}))
		}
	}
	answers := make(map[*callstack.Frame]bool)
	anyFrame := func(r *Resolver, id uint64) bool {
		return slices.ContainsFunc(r.Stacks.Of(callstack.PairOf(id)).All, func(f *callstack.Frame) bool {
			answer, known := answers[f]
			if !known {
				answer = f.Matches(re)
				answers[f] = answer
			}
			return answer
		})
	}
	return append(list, &KeyFilter{Grouping: &ByStack, matches: anyFrame})
}

// underTag reports whether a tag path is the wanted one or lies below it.
func underTag(tag, wanted string) bool {
	rest, ok := strings.CutPrefix(tag, wanted)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '/')
}

// Narrowed reports whether the filter selects by anything but the device, so that whole-device figures no longer fit
// beside the blocks.
func (f *Filter) Narrowed() bool {
	return f != nil && (f.Exact != nil || f.Focus != nil || f.ignore != nil)
}

// HasDevice reports whether a device is among those asked for.
func (f *Filter) HasDevice(device int16) bool {
	return f == nil || f.Devices == nil || f.Devices[device]
}

func (f *Filter) Pass(r *Resolver, o *Origin) bool {
	if !f.HasDevice(o.Device) {
		return false
	}
	for _, k := range f.Exact {
		if !k.pass(r, o) {
			return false
		}
	}
	for _, k := range f.ignore {
		if k.pass(r, o) {
			return false
		}
	}
	for _, k := range f.Focus {
		if k.pass(r, o) {
			return true
		}
	}
	return len(f.Focus) == 0
}
