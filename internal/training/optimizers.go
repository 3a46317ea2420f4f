package training

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"memtrace/trace"
)

// optimizers are those whose steps were reported.
type optimizers struct {
	all  map[uint64]*optimizer // by address of the object
	last uint64                // the one that stepped last
}

type optimizer struct {
	name        trace.StringID
	count       uint64
	repeats     uint64 // how many of its steps came directly after another one of its own
	first, last uint64 // order numbers of the first step and the last
}

func newOptimizers() optimizers { return optimizers{all: make(map[uint64]*optimizer)} }

// step takes in a step.
func (l *optimizers) step(e *trace.Event) {
	o := l.all[e.Handle]
	if o == nil {
		o = &optimizer{name: e.Name, first: e.Seq}
		l.all[e.Handle] = o
	}
	if o.count > 0 && l.last == e.Handle {
		o.repeats++
	}
	o.count++
	o.last, l.last = e.Seq, e.Handle
}

// ending returns the optimizers whose steps end iterations, by address of the object, and what they are called.
//
// Optimizers of one stretch of the run, from the first step of one to its last, belong together: a stretch ends where
// none of them steps any more, as between models that are trained one after another. In a stretch they take turns, or
// each steps many times in a row:
//
//	ABABAB      two networks of one iteration: the steps of the one that begins later end it
//	AAABAAAB    those of A, after which B belongs to the next one
//	AAABBBAAA   those of both
func (l *optimizers) ending(tables *trace.Tables) (by map[uint64]bool, words string) {
	by = make(map[uint64]bool)
	for _, stretch := range l.stretches() {
		for _, object := range l.endingIn(stretch) {
			by[object] = true
		}
	}
	var names []string
	for object := range by {
		names = append(names, tables.String(l.all[object].name))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > 3 {
		names = append(names[:2], "others")
	}
	if n := len(names) - 1; n > 0 {
		return by, "steps of " + strings.Join(names[:n], ", ") + " and " + names[n]
	}
	return by, "steps of " + strings.Join(names, "")
}

// stretches divides the optimizers, in the order of their first steps. Neighbours that stepped once each are one
// stretch: that several step one after another is then all that is known of an iteration.
func (l *optimizers) stretches() (list [][]uint64) {
	objects := slices.SortedFunc(maps.Keys(l.all), func(a, b uint64) int {
		return cmp.Compare(l.all[a].first, l.all[b].first)
	})
	var until uint64
	once := false // whether all of the latest stretch stepped once
	for _, object := range objects {
		o := l.all[object]
		n := len(list) - 1
		if n < 0 || o.first > until && (!once || o.count > 1) {
			list, n, once = append(list, nil), n+1, true
		}
		list[n] = append(list[n], object)
		until, once = max(until, o.last), once && o.count == 1
	}
	return list
}

// endingIn returns those of a stretch that mostly step many times in a row; else the one that stepped most often, of
// several the one whose first step came last, so that an iteration ends after all of them stepped.
func (l *optimizers) endingIn(stretch []uint64) (list []uint64) {
	for _, object := range stretch {
		if o := l.all[object]; 2*o.repeats > o.count {
			list = append(list, object)
		}
	}
	if len(list) > 0 {
		return list
	}
	most := stretch[0]
	for _, object := range stretch[1:] {
		if l.all[object].count >= l.all[most].count {
			most = object
		}
	}
	return []uint64{most}
}
