package profile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
)

// Filter decides which blocks a summary counts. It runs once per origin, and regular expressions run once per distinct
// key.
type Filter struct {
	Devices map[int16]bool // nil: all
	Exact   []*KeyFilter   // all must pass
	Focus   []*KeyFilter   // one must pass, if there are any
	ignore  []*KeyFilter   // none may pass
	owner   *KeyFilter     // must pass; nil: all do
}

// KeyFilter tests the key of an origin in one grouping, and caches the results.
type KeyFilter struct {
	Grouping *Grouping
	matches  func(r *Resolver, id uint64) bool
	IDs      heap.IDIndex
	Answers  []bool // by number of the id
}

// newKeyFilter returns a filter on the keys of a grouping.
func newKeyFilter(g *Grouping, matches func(key string) bool) *KeyFilter {
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

// Selection is the blocks that a summary counts; see Options.
type Selection struct {
	Devices       []int16
	Tag           string
	Library       string
	Focus, Ignore *regexp.Regexp

	By *Grouping             // nil: all
	Is func(key string) bool // with By: the keys that are selected
}

// Words describes the selection, in the order of its options.
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
		f.Exact = append(f.Exact, newKeyFilter(FindGrouping("tag"), func(key string) bool {
			return underTag(key, o.Tag)
		}))
	}
	if o.Library != "" {
		f.Exact = append(f.Exact, newKeyFilter(FindGrouping("library"), func(key string) bool {
			return strings.Contains(key, o.Library)
		}))
	}
	if o.By != nil {
		f.owner = newKeyFilter(o.By, o.Is)
	}
	if f.Devices == nil && f.Exact == nil && f.Focus == nil && f.ignore == nil && f.owner == nil {
		return nil
	}
	return f
}

// unnamedKeys are keys that are not names.
var unnamedKeys = []string{report.Untagged, report.Unnamed, report.NoModule}

// textFilters makes one filter for every grouping whose keys are names, and one for the frames of the call stack,
// folded or not.
func textFilters(re *regexp.Regexp) []*KeyFilter {
	if re == nil {
		return nil
	}
	var list []*KeyFilter
	for i := range groupings {
		if groupings[i].text {
			list = append(list, newKeyFilter(&groupings[i], func(key string) bool {
				return !slices.Contains(unnamedKeys, key) && re.MatchString(key)
			}))
		}
	}
	results := make(map[*callstack.Frame]bool)
	anyFrame := func(r *Resolver, id uint64) bool {
		return slices.ContainsFunc(r.Stacks.Of(callstack.PairOf(id)).All, func(f *callstack.Frame) bool {
			result, known := results[f]
			if !known {
				result = f.Matches(re)
				results[f] = result
			}
			return result
		})
	}
	return append(list, &KeyFilter{Grouping: &ByStack, matches: anyFrame})
}

// underTag reports whether a tag path is the wanted one or is below it.
func underTag(tag, wanted string) bool {
	rest, ok := strings.CutPrefix(tag, wanted)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '/')
}

// Narrowed reports whether the filter selects by anything but the device, so that whole-device figures no longer apply
// to the selected blocks.
func (f *Filter) Narrowed() bool {
	return f != nil && (f.Exact != nil || f.Focus != nil || f.ignore != nil || f.owner != nil)
}

// HasDevice reports whether a device is selected.
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
	if f.owner != nil && !f.owner.pass(r, o) {
		return false
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
