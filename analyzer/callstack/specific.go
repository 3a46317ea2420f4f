package callstack

import (
	"hash/fnv"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/analyzer/symbol"
)

// Place is a frame of the program's own code as the answer to where memory came from.
type Place struct {
	Key  string // as of a site
	User bool
}

const (
	fewLines   = 2  // of a building block that are named one by one
	fewPlaces  = 4  // the same of any
	joinedPart = 80 // percent of the weight that a line must have brought about to be named for all
	commonPart = 90 // percent of all stacks: a line that so many pass through tells nothing apart
)

// Specific names, for each of some stacks, the innermost frame of the program's own code that tells them from others:
// a line that the others reach by other ways, such as the inside of a building block, says less than the line that
// called it. More than a few places are named by the line where their stacks join, unless that is one that the whole
// program runs below.
func (j *Classifier) Specific(stacks []*Stack, weights []uint64, others []*Stack) []Place {
	shared := make(map[string]map[uint64]bool) // by line: what called it, of the others
	common := make(map[uint64]int)             // by way to a line: stacks that pass through it
	for _, s := range others {
		for _, f := range j.way(s) {
			if shared[f.key] == nil {
				shared[f.key] = make(map[uint64]bool)
			}
			shared[f.key][f.above] = true
			common[f.way]++
		}
	}
	ways := make([][]step, len(stacks))
	places := make([]Place, len(stacks))
	for i, s := range stacks {
		ways[i] = j.way(s)
		for _, f := range ways[i] {
			common[f.way]++
		}
		end := len(ways[i])
		for end > 0 && alsoOf(shared[ways[i][end-1].key], ways[i][end-1].above) {
			end--
		}
		if end == 0 { // every line is the others' as well
			end = len(ways[i])
		}
		ways[i] = ways[i][:end]
		places[i] = j.placeOf(s, ways[i])
	}
	joinBlocks(ways, places)
	if at := join(ways, weights, common, len(stacks)+len(others)); at != nil && kinds(places) > fewPlaces {
		for i := range stacks {
			if slices.ContainsFunc(ways[i], func(f step) bool { return f.way == at.way }) {
				places[i] = Place{at.key, true}
			}
		}
	}
	return places
}

// joinBlocks names the line that called a building block for the many lines of the block.
func joinBlocks(ways [][]step, places []Place) {
	callers := make([]*step, len(ways))
	below := make(map[uint64]map[string]bool) // by caller
	for i, way := range ways {
		n := len(way)
		for n > 0 && way[n-1].block {
			n--
		}
		if n == 0 || n == len(way) {
			continue
		}
		callers[i] = &way[n-1]
		if below[callers[i].way] == nil {
			below[callers[i].way] = make(map[string]bool)
		}
		below[callers[i].way][places[i].Key] = true
	}
	for i, f := range callers {
		if f != nil && len(below[f.way]) > fewLines {
			places[i] = Place{f.key, true}
		}
	}
}

// kinds counts different places.
func kinds(places []Place) int {
	keys := make(map[string]bool)
	for _, p := range places {
		keys[p.Key] = true
	}
	return len(keys)
}

// step is a line of a stack, and how it was reached.
type step struct {
	key        string
	frame      *Frame
	above, way uint64 // hashes of the lines that led to it, without and with it
	block      bool   // the program called a framework, which called the function: a module's, as a rule
}

// way lists the program's own lines of a stack, outermost first.
func (j *Classifier) way(s *Stack) (list []step) {
	h := fnv.New64a()
	framework, library := false, false
	for _, f := range slices.Backward(s.All) {
		if f.User {
			v := step{key: j.Site(f), frame: f, above: h.Sum64(), block: framework && !library}
			h.Write([]byte(v.key + "\x00"))
			v.way = h.Sum64()
			list = append(list, v)
		}
		switch {
		case f.User:
			framework, library = false, false
		case f.Kind == symbol.Python && j.beneath(f):
			framework = true
		case f.Kind == symbol.Python:
			library = true
		}
	}
	return list
}

// alsoOf reports whether others reach a line by another way.
func alsoOf(ways map[uint64]bool, mine uint64) bool {
	return len(ways) > 1 || len(ways) == 1 && !ways[mine]
}

// placeOf names the last line of a way, or the site of a stack without one.
func (j *Classifier) placeOf(s *Stack, way []step) Place {
	if len(way) == 0 || s.Key == report.BeforeStart || way[len(way)-1].frame == s.Site {
		return Place{s.Key, s.Site != nil && s.Site.User}
	}
	f := way[len(way)-1]
	if !slices.Contains(s.All[:s.own], f.frame) {
		return Place{s.Backward + f.key, true}
	}
	return Place{f.key, true}
}

// join returns the innermost line that most of the weight passed through; nil if that is a
// line that nearly all stacks pass through.
func join(ways [][]step, weights []uint64, common map[uint64]int, all int) *step {
	var total uint64
	passed, at := make(map[uint64]uint64), make(map[uint64]step)
	depth := make(map[uint64]int)
	for i, way := range ways {
		total += weights[i]
		for k, f := range way {
			passed[f.way] += weights[i]
			at[f.way], depth[f.way] = f, k
		}
	}
	var best *step
	for way, weight := range passed {
		if weight*100 < total*joinedPart || common[way]*100 > all*commonPart {
			continue
		}
		if f := at[way]; best == nil || depth[way] > depth[best.way] {
			best = &f
		}
	}
	return best
}

// Module returns the framework's module that was running when a stack was recorded, by its address; 0 for none.
func (c *Stacks) Module(pair Pair) uint64 {
	python := c.links.Split(pair.Python)
	frames, _ := c.Tables.PyStack(python.Backward)
	for _, f := range frames {
		if f.Self != 0 {
			return f.Self
		}
	}
	return 0
}
