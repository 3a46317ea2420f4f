package callstack

import (
	"hash/fnv"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/symbol"
)

// Place is a frame of the program's own code to which memory is attributed.
type Place struct {
	Key  string // as of a site
	User bool
}

const (
	fewLines   = 2  // of a building block that are named one by one
	fewPlaces  = 4  // the same of any
	joinedPart = 80 // percent of the weight that a line must have brought about to be named for all
	commonPart = 90 // percent of all stacks: a line that so many pass through distinguishes nothing
)

// Specific names, for each of some stacks, the innermost frame of the program's own code that distinguishes it from
// others: a line that the others reach on other paths, such as the inside of a building block, is less useful than the
// line that called it. More than a few places are named by the line where their stacks join, unless the whole program
// runs below that line.
func (j *Classifier) Specific(stacks []*Stack, weights []uint64, others []*Stack) []Place {
	shared := make(map[string]map[uint64]bool) // by line: its callers in the other stacks
	common := make(map[uint64]int)             // by path to a line: stacks that pass through it
	for _, s := range others {
		for _, f := range j.path(s) {
			if shared[f.key] == nil {
				shared[f.key] = make(map[uint64]bool)
			}
			shared[f.key][f.above] = true
			common[f.path]++
		}
	}
	paths := make([][]step, len(stacks))
	places := make([]Place, len(stacks))
	for i, s := range stacks {
		paths[i] = j.path(s)
		for _, f := range paths[i] {
			common[f.path]++
		}
		end := len(paths[i])
		for end > 0 && onOtherPath(shared[paths[i][end-1].key], paths[i][end-1].above) {
			end--
		}
		if end == 0 { // the others contain every line as well
			end = len(paths[i])
		}
		paths[i] = paths[i][:end]
		places[i] = j.placeOf(s, paths[i])
	}
	joinBlocks(paths, places)
	if at := join(paths, weights, common, len(stacks)+len(others)); at != nil && countPlaces(places) > fewPlaces {
		for i := range stacks {
			if slices.ContainsFunc(paths[i], func(f step) bool { return f.path == at.path }) {
				places[i] = Place{at.key, true}
			}
		}
	}
	return places
}

// joinBlocks names the line that called a building block for the many lines of the block.
func joinBlocks(paths [][]step, places []Place) {
	callers := make([]*step, len(paths))
	below := make(map[uint64]map[string]bool) // by caller
	for i, path := range paths {
		n := len(path)
		for n > 0 && path[n-1].block {
			n--
		}
		if n == 0 || n == len(path) {
			continue
		}
		callers[i] = &path[n-1]
		if below[callers[i].path] == nil {
			below[callers[i].path] = make(map[string]bool)
		}
		below[callers[i].path][places[i].Key] = true
	}
	for i, f := range callers {
		if f != nil && len(below[f.path]) > fewLines {
			places[i] = Place{f.key, true}
		}
	}
}

// countPlaces counts different places.
func countPlaces(places []Place) int {
	keys := make(map[string]bool)
	for _, p := range places {
		keys[p.Key] = true
	}
	return len(keys)
}

// step is a line of a stack, and how it was reached.
type step struct {
	key         string
	frame       *Frame
	above, path uint64 // hashes of the lines that led to it, without and with it
	block       bool   // the program called a framework, which called the function: a module's, as a rule
}

// path lists the program's own lines of a stack, outermost first.
func (j *Classifier) path(s *Stack) (list []step) {
	h := fnv.New64a()
	framework, library := false, false
	for _, f := range slices.Backward(s.All) {
		if f.User {
			v := step{key: j.Site(f), frame: f, above: h.Sum64(), block: framework && !library}
			h.Write([]byte(v.key + "\x00"))
			v.path = h.Sum64()
			list = append(list, v)
		}
		switch {
		case f.User:
			framework, library = false, false
		case f.Kind == symbol.Python && j.isInfrastructure(f):
			framework = true
		case f.Kind == symbol.Python:
			library = true
		}
	}
	return list
}

// onOtherPath reports whether others reach a line on another path.
func onOtherPath(paths map[uint64]bool, mine uint64) bool {
	return len(paths) > 1 || len(paths) == 1 && !paths[mine]
}

// placeOf names the last line of a path, or the site of a stack without one.
func (j *Classifier) placeOf(s *Stack, path []step) Place {
	if len(path) == 0 || s.Key == report.BeforeStart || path[len(path)-1].frame == s.Site {
		return Place{s.Key, s.Site != nil && s.Site.User}
	}
	f := path[len(path)-1]
	if !slices.Contains(s.All[:s.own], f.frame) {
		return Place{s.Backward + f.key, true}
	}
	return Place{f.key, true}
}

// join returns the innermost line that most of the weight passed through; nil if that is a
// line that nearly all stacks pass through.
func join(paths [][]step, weights []uint64, common map[uint64]int, all int) *step {
	var total uint64
	passed, at := make(map[uint64]uint64), make(map[uint64]step)
	depth := make(map[uint64]int)
	for i, path := range paths {
		total += weights[i]
		for k, f := range path {
			passed[f.path] += weights[i]
			at[f.path], depth[f.path] = f, k
		}
	}
	var best *step
	for path, weight := range passed {
		if weight*100 < total*joinedPart || common[path]*100 > all*commonPart {
			continue
		}
		if f := at[path]; best == nil || depth[path] > depth[best.path] {
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
