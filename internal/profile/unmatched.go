package profile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"memtrace/analyzer/report"
)

// namesShown is how many names an explanation lists.
const namesShown = 8

// Unmatched reports, for each filter that matched nothing, the keys that exist instead; used are the devices on which
// memory was allocated, whatever the filters are. Empty if there is none, or if the filters were not applied to any
// memory at all.
func (f *Filter) Unmatched(o *Selection, used []int16, r *Resolver) (list []string) {
	if f == nil {
		return nil
	}
	if len(o.Devices) > 0 && len(used) > 0 {
		for _, d := range o.Devices {
			if !slices.Contains(used, d) {
				list = append(list, fmt.Sprintf("no memory was allocated on device %d; the trace has allocations on %s",
					d, deviceNames(used)))
			}
		}
	}
	passed := func(k *KeyFilter) bool { return slices.Contains(k.Answers, true) }
	applied := func(k *KeyFilter) bool { return len(k.Answers) > 0 }
	for _, k := range f.Exact {
		if passed(k) || !applied(k) {
			continue
		}
		switch k.Grouping.Name {
		case "tag":
			list = append(list, fmt.Sprintf("nothing has the tag %q; %s", o.Tag, k.known(r, "tags", report.Untagged)))
		case "library":
			list = append(list, fmt.Sprintf("no library's name contains %q; %s", o.Library,
				k.known(r, "calls from", report.UnknownLibrary)))
		}
	}
	if slices.ContainsFunc(f.Focus, applied) && !slices.ContainsFunc(f.Focus, passed) {
		list = append(list, fmt.Sprintf("nothing matches --focus %s", o.Focus))
	}
	return list
}

func deviceNames(devices []int16) string {
	var names []string
	for _, d := range devices {
		if d < 0 {
			names = append(names, "an unknown one")
		} else {
			names = append(names, "device "+strconv.Itoa(int(d)))
		}
	}
	return strings.Join(names, ", ")
}

// known lists the keys that a filter was applied to.
func (k *KeyFilter) known(r *Resolver, what, none string) string {
	var keys []string
	for _, id := range k.IDs.IDs {
		if key := k.Grouping.Key(r, id); key != none {
			keys = append(keys, strconv.Quote(key))
		}
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) == 0 {
		return "the trace has no " + what + " at all"
	}
	more := ""
	if n := len(keys) - namesShown; n > 0 {
		keys, more = keys[:namesShown], fmt.Sprintf(" and %d more", n)
	}
	return "there are " + what + " " + strings.Join(keys, ", ") + more
}
