package analyzer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"memtrace/analyzer/profile"
	"memtrace/analyzer/report"
)

// namesShown is how many names an explanation lists.
const namesShown = 8

// unmatched says of each filter that let nothing pass what there is instead. Empty if there is none, or if the filters
// were not asked about any memory at all.
func (c *collector) unmatched(o *Options) (list []string) {
	if c.filter == nil {
		return nil
	}
	if devices := c.usedSlots(); len(o.Devices) > 0 && len(devices) > 0 {
		for _, d := range o.Devices {
			if !slices.Contains(devices, d) {
				list = append(list, fmt.Sprintf("no memory was allocated on device %d; the trace has allocations on %s", d, deviceNames(devices)))
			}
		}
	}
	passed := func(k *profile.KeyFilter) bool { return slices.Contains(k.Answers, true) }
	asked := func(k *profile.KeyFilter) bool { return len(k.Answers) > 0 }
	for _, k := range c.filter.Exact {
		if passed(k) || !asked(k) {
			continue
		}
		switch k.Grouping.Name {
		case "tag":
			list = append(list, fmt.Sprintf("nothing has the tag %q; %s", o.Tag, c.keysOf(k, "tags", report.Untagged)))
		case "library":
			list = append(list, fmt.Sprintf("no library's name contains %q; %s", o.Library, c.keysOf(k, "calls from", report.UnknownLibrary)))
		}
	}
	if f := c.filter.Focus; len(f) > 0 && slices.ContainsFunc(f, asked) && !slices.ContainsFunc(f, passed) {
		list = append(list, fmt.Sprintf("nothing matches --focus %s", o.Focus))
	}
	return list
}

// usedSlots are the devices on which anything was asked for, whatever the filters say.
func (c *collector) usedSlots() (list []int16) {
	for slot := range c.device.Holdings.Devices {
		if d := &c.device.Holdings.Devices[slot]; len(d.ByLibrary) > 0 || d.Seen > 0 {
			list = append(list, int16(slot-1))
		}
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

// keysOf lists what a filter was asked about.
func (c *collector) keysOf(k *profile.KeyFilter, what, none string) string {
	var keys []string
	for _, id := range k.IDs.IDs {
		if key := k.Grouping.Key(&c.resolver, id); key != none {
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
