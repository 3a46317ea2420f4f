package cause

import (
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/profile"
)

// byCaller divides a place by its callers: by the program's next lines outwards, as far as needed for them to differ. A
// pool of the program is such a place, where all of its clients meet.
func (d *dividedList) byCaller(site string) *dividing {
	callers := make([][]string, len(d.list))
	for i := range d.list {
		callers[i] = d.callers(site, profile.StackID(nil, &d.list[i].Origin))
	}
	var first *dividing
	for level := range maxDivisionDepth {
		keys, further := make([]string, len(callers)), false
		for i, list := range callers {
			keys[i] = site // nothing of the program's is known to have called it
			if len(list) > 0 {
				keys[i] = list[min(level, len(list)-1)]
			}
			further = further || level < len(list)
		}
		if !further {
			break
		}
		w := d.divide(report.ByCaller, keys)
		known := 0
		for i := range w.rows {
			if w.rows[i].Known = w.rows[i].Key != site; w.rows[i].Known {
				known++
			}
		}
		switch w.weigh(d); {
		case known < 2, w.rows[0].Bytes >= d.percent(divisionWhole):
		case w.most <= divisionReadable:
			return w
		case first == nil:
			first = w
		}
	}
	return first
}

// callers are the program's own lines outside of a stack's site, innermost first. Recursive calls of the site do not
// count.
func (d *dividedList) callers(site string, id uint64) (lines []string) {
	stacks := d.resolver.Stacks
	s := stacks.Of(callstack.PairOf(id))
	at := slices.Index(s.All, s.Site)
	for _, f := range s.All[at+1:] {
		if !f.User {
			continue
		}
		if line := stacks.Classifier.Site(f); line != site {
			lines = append(lines, line)
		}
	}
	return lines
}
