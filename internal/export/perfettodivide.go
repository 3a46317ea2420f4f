package export

import (
	"cmp"
	"slices"
	"strings"

	"memtrace/analyzer/report"
)

// perfettoOwners is the number of owners with a counter of their own; the others share one.
const perfettoOwners = 12

// divide writes the level's bytes by category, and by the grouping by which the report divides it.
func (p *perfettoWatch) divide(s *report.Summary) {
	h := s.History
	if len(h.Blocks) == 0 {
		return
	}
	by := []string{"category"}
	if len(s.By) > 0 {
		by = append(by, s.By[0])
	}
	for rank, name := range append(by, "site") {
		if i := slices.Index(h.By, name); i >= 0 && !slices.Contains(append(by, "site")[:rank], name) {
			p.divideBy(s, i, rankDivisions+rank)
		}
	}
}

// divideBy writes a counter for each of the keys that held most at some moment, and one for all others, which is the
// level without these. The sum is the level's at every moment of the history, and at the end of the run.
func (p *perfettoWatch) divideBy(s *report.Summary, by, rank int) {
	h := s.History
	changes := changesOf(h, by)
	largest := changes.largest(perfettoOwners)
	// "(untagged)": nothing to divide
	if len(largest) == 0 || len(largest) == 1 && strings.HasPrefix(changes.keys[largest[0]], "(") {
		return
	}
	parent := p.file.track(p.process, "By "+h.By[by], rank)
	tracks := make(map[int]perfettoTrack, len(largest))
	for i, key := range largest {
		tracks[key] = p.file.counter(parent, changes.keys[key], i)
	}
	var others perfettoTrack
	if len(largest) < len(changes.keys) || h.LeftOut > 0 {
		others = p.file.counter(parent, "others", len(largest))
	}
	live := make([]uint64, len(changes.keys))
	var shown, last uint64
	var time int64 // a viewer sorts by it: it must not decrease
	for i, c := range changes.list {
		time = max(time, h.Times[i])
		live[c.key] += c.by
		if track := tracks[c.key]; track != 0 {
			shown += c.by
			p.file.set(track, time, live[c.key])
		}
		if rest := h.Levels[i] - min(shown, h.Levels[i]); others != 0 && (rest != last || i == 0) {
			p.file.set(others, time, rest)
			last = rest
		}
	}
	if live := s.Main().LiveBytes; others != 0 && live-min(shown, live) != last {
		p.file.set(others, max(time, s.Process.DurationNS), live-min(shown, live))
	}
}

// keyChanges are the events of a history as changes of a key's bytes.
type keyChanges struct {
	keys []string
	list []keyChange // by event
}

type keyChange struct {
	key int
	by  uint64 // may wrap around
}

func changesOf(h *report.History, by int) *keyChanges {
	c := &keyChanges{list: make([]keyChange, len(h.Times))}
	numbers := make(map[string]int)
	owners := make([]int, len(h.Owners))
	for i, o := range h.Owners {
		n, known := numbers[o.Keys[by]]
		if !known {
			n = len(c.keys)
			numbers[o.Keys[by]] = n
			c.keys = append(c.keys, o.Keys[by])
		}
		owners[i] = n
	}
	for _, b := range h.Blocks {
		c.list[b.Born] = keyChange{owners[b.Owner], b.Size}
		if int(b.Died) < len(c.list) {
			c.list[b.Died] = keyChange{owners[b.Owner], -b.Size}
		}
	}
	return c
}

// largest returns the keys with the highest bytes at a moment of their own, the highest first.
func (c *keyChanges) largest(most int) []int {
	live, highest := make([]uint64, len(c.keys)), make([]uint64, len(c.keys))
	order := make([]int, len(c.keys))
	for i := range order {
		order[i] = i
	}
	for _, change := range c.list {
		live[change.key] += change.by
		highest[change.key] = max(highest[change.key], live[change.key])
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(highest[b], highest[a]), cmp.Compare(c.keys[a], c.keys[b]))
	})
	order = slices.DeleteFunc(order, func(key int) bool { return highest[key] == 0 })
	return order[:min(most, len(order))]
}
