package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Others is the label value of everything that has no series of its own.
const Others = "others"

// Part is one key of what is divided, and what it has.
type Part struct {
	Key   string
	Value float64
}

// maxRemembered bounds the keys that a Chooser follows.
const maxRemembered = 4096

// Chooser picks the keys that have series of their own, and remembers them: which keys are the largest changes from
// moment to moment, and a series that comes and goes cannot be drawn. A key is judged by the most that it ever had. The
// zero value is not ready: see NewChooser.
type Chooser struct {
	limit   int
	highest map[string]float64
	more    bool // there was something for Others
}

// NewChooser returns a Chooser of so many keys.
func NewChooser(limit int) *Chooser { return &Chooser{limit: limit, highest: make(map[string]float64)} }

// Choose divides parts into those with series of their own and the rest, which comes last as Others if there ever was
// any. Values add up to those of parts. Keys that had something before and have nothing now are 0. Keys are cleaned,
// and those that are the same then are one.
func (c *Chooser) Choose(parts []Part) []Part {
	now := make(map[string]float64, len(parts))
	for _, p := range parts {
		now[Clean(p.Key)] += p.Value
	}
	for key, value := range now {
		if high, known := c.highest[key]; key != Others && (!known || value > high) {
			c.highest[key] = value
		}
	}
	order := slices.SortedFunc(maps.Keys(c.highest), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.highest[b], c.highest[a]), strings.Compare(a, b))
	})
	for _, key := range order[min(len(order), maxRemembered):] {
		delete(c.highest, key)
	}
	chosen := order[:min(len(order), c.limit)]
	list := make([]Part, 0, len(chosen)+1)
	for _, key := range chosen {
		list = append(list, Part{key, now[key]})
		delete(now, key)
	}
	if c.more = c.more || len(now) > 0 || len(order) > c.limit; !c.more {
		return list
	}
	var rest float64
	for _, value := range now {
		rest += value
	}
	return append(list, Part{Others, rest})
}
