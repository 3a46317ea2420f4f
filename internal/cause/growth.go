package cause

import (
	"cmp"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
)

// growth is memory of one account that repeatedly rises and stays.
type growth struct {
	account heap.Account
	stacks  []profile.HeldStack // that grow
	by      []uint64            // by how much, each
	others  []profile.HeldStack // the account's
	from    int                 // the point since when
	grown   []uint64            // bytes that the growing stacks kept, by point
	held    []uint64            // what all stacks held at the least
	kept    []uint64            // bytes that all stacks kept
	rest    uint64              // steady growth of the others
	bytes   uint64              // by how much all rise
	replace bool                // blocks are replaced by larger ones, and there are no more of them
}

// place is the call stacks of one line of the program.
type place struct {
	members []int    // among the account's stacks
	sum     []uint64 // bytes that they kept, by point
	held    []uint64 // and at the least
	rises   int
	blocks  uint32
	again   bool // its call stacks rise more than once
}

// growthOf looks for the lines of the program whose memory rises repeatedly, nil if there are none.
func (j *GrowthJudge) growthOf(account heap.Account) *growth {
	list, last := j.stacks(account), len(j.times)-1
	g := &growth{account: account, held: make([]uint64, last+1), kept: make([]uint64, last+1),
		grown: make([]uint64, last+1)}
	kept := make([][]uint64, len(list))
	for i, v := range list {
		if v.Lows != nil {
			kept[i] = stayed(v.Lows)[:last+1]
			addSeries(g.held, v.Lows)
			addSeries(g.kept, kept[i])
		}
	}
	grows := make([]bool, len(list))
	var replaced, all uint64
	for _, p := range j.places(list, kept) {
		from, found := beginOfRise(p.sum, j.finished)
		if !found || p.wasFreed(from, j.pointsPerIteration(from)) {
			continue
		}
		addSeries(g.grown, p.sum)
		rise := p.sum[last] - p.sum[from]
		if all += rise; int(p.blocks) < p.rises/2 {
			replaced += rise
		}
		for _, i := range p.members {
			grows[i] = true
		}
	}
	end := last
	if g.replace = replaced > all/2; g.replace { // by the last allocation there may be both the old and the new one
		end--
		g.grown[last] = g.grown[end]
	}
	found := false
	if g.from, found = beginOfRise(g.grown, j.finished); !found {
		return nil
	}
	rest := make([]uint64, last+1)
	for i, v := range list {
		if grows[i] {
			g.stacks = append(g.stacks, v)
			g.by = append(g.by, kept[i][end]-kept[i][g.from])
			continue
		}
		g.others = append(g.others, v)
		addSeries(rest, kept[i])
	}
	g.bytes = g.grown[last] - g.grown[g.from]
	g.addRest(rest)
	return g
}

// places divides the call stacks that rise by lines of the program.
func (j *GrowthJudge) places(list []profile.HeldStack, kept [][]uint64) map[string]*place {
	points := len(j.times)
	places := make(map[string]*place)
	for i, v := range list {
		at := rises(kept[i])
		if len(at) == 0 || at[0] == points-1 {
			continue // the latest memory may be in flight
		}
		key, _ := j.Resolver.PlaceOf(v.ID)
		p := places[key]
		again := len(at) > 1
		switch {
		case p == nil || again && !p.again: // a single other rise is unrelated
			p = &place{sum: make([]uint64, points), held: make([]uint64, points), again: again}
			places[key] = p
		case p.again && !again:
			continue
		}
		p.members = append(p.members, i)
		p.rises, p.blocks = p.rises+len(at), p.blocks+v.Blocks
		addSeries(p.sum, kept[i])
		addSeries(p.held, v.Lows)
	}
	return places
}

// addRest adds the growth of the others, if they still grow in the second half.
func (g *growth) addRest(rest []uint64) {
	last := len(rest) - 1
	middle := (g.from + last) / 2
	number := make([]int64, last+1-middle)
	for i := range number {
		number[i] = int64(i)
	}
	steady := uint64(max(slope(rest[middle:], number), 0) * float64(last-g.from))
	if steady > g.bytes/20 {
		g.rest = steady
		g.bytes += steady
	}
}

// wasFreed reports whether memory as large as the growth was freed before: it fills up and is emptied in turn. What was
// gone within one round, of so many points, was of an iteration.
func (p *place) wasFreed(from, round int) bool {
	last := len(p.sum) - 1
	rise := p.sum[last] - p.sum[from]
	for i := 0; i+round <= last; i++ {
		if low := slices.Min(p.held[i : i+round]); low > p.sum[i] && low-p.sum[i] > rise/2 {
			return true
		}
	}
	return false
}

// round is how many points an iteration has, about; a tenth of them where the iterations are not known.
func (j *GrowthJudge) round(g *growth) int {
	if n := j.pointsPerIteration(g.from); n > 1 {
		return n
	}
	return (len(j.times) - 1 - g.from) / 10
}

// pointsPerIteration is how many points from one on an iteration has, about; 1 where the iterations are not known.
func (j *GrowthJudge) pointsPerIteration(from int) int {
	last := len(j.times) - 1
	if n := j.iterations(j.times[from], j.times[last]); n > 0 {
		return (last-from)/n + 2
	}
	return 1
}

// moves reports whether others freed the memory that grew: the least of the last round, of so many points, is no more
// than that of the first one. Single points are of different phases of an iteration, with more activations or fewer.
func (g *growth) moves(round int) bool {
	last := len(g.held) - 1 // the last allocation includes memory in flight
	round = max(min(round, (last-g.from-1)/3), 1)
	return slices.Min(g.held[last-round:last]) < slices.Min(g.held[g.from+1:g.from+1+round])+g.bytes/keptPart
}

// repeats reports whether the program repeated its work often enough while memory grew: by its iterations, by the
// modules that it calls, else by what it frees.
func (j *GrowthJudge) repeats(g *growth) bool {
	if j.iterations(j.times[g.from], j.times[len(j.times)-1]) >= minRounds {
		return true
	}
	switch again, known := j.modulesRepeat(); {
	case known:
		return again
	case j.Imported, j.Summary.Training != nil && j.Summary.Training.IterationsBy != report.IterationsByNothing &&
		j.Summary.Training.IterationsBy != report.IterationsByPeriod:
		return false
	}
	if g.account != heap.AccountFramework && j.Summary.Framework.Empty() && !j.python(g) {
		return j.continuesOverTime(g)
	}
	var freed uint64
	for _, bytes := range j.Held.Freed[g.from : len(j.times)-1] {
		freed += bytes
	}
	return freed >= minChurn*g.bytes
}

// modulesRepeat reports whether most of a framework's modules were called again and again, known whether there are any.
func (j *GrowthJudge) modulesRepeat() (again, known bool) {
	calls := make(map[uint64]uint32)
	for _, v := range j.Held.Of(heap.AccountFramework) {
		if module := j.Resolver.Stacks.Module(callstack.PairOf(v.ID)); module != 0 {
			calls[module] = max(calls[module], v.Allocs)
		}
	}
	often := 0
	for _, count := range calls {
		if count > minRounds {
			often++
		}
	}
	return often*2 > len(calls), len(calls) > 0
}

// python reports whether Python code allocated what grows.
func (j *GrowthJudge) python(g *growth) bool {
	return slices.ContainsFunc(g.stacks, func(v profile.HeldStack) bool { return callstack.PairOf(v.ID).Python != 0 })
}

// continuesOverTime reports whether a program whose rounds are unknown allocated up to its end: data loaded at the
// beginning is in use afterwards.
func (j *GrowthJudge) continuesOverTime(g *growth) bool {
	at := rises(g.grown[g.from:])
	from, latest := j.times[g.from], j.times[g.from+at[len(at)-1]]
	end := max(j.Summary.EndNS(), latest)
	return len(at) >= nativeRises && end-latest <= max((end-from)/4, ending)
}

// ended reports whether the memory that grew was freed while the rest stayed: it ended with its purpose, such as the
// response to a request.
func (j *GrowthJudge) ended(g *growth) bool {
	if j.Summary.OOM.Count > 0 {
		return false
	}
	if j.replacesEachIteration(g) {
		return false // see inputsGetLonger
	}
	var left, closed uint64
	var rest, stay, before uint32 // blocks: one of them may be larger than a model
	for _, v := range g.stacks {
		left, closed = left+v.Live, max(closed, v.ClosedAt)
	}
	for _, v := range g.others {
		if v.Lows == nil {
			continue
		}
		rest += v.Blocks
		if stay += min(v.Left, v.Blocks); v.Left == 0 && v.ClosedAt < closed {
			before += v.Blocks
		}
	}
	switch {
	case rest == 0 || left > g.bytes/10:
		return false
	case g.replace:
		return before <= rest/2
	}
	return stay > rest/2
}

// replacesEachIteration reports whether iterations are known, and blocks are replaced by larger ones in them.
func (j *GrowthJudge) replacesEachIteration(g *growth) bool {
	return g.replace && j.iterations(j.times[g.from], j.times[len(j.times)-1]) >= minRounds
}

// inputsGetLonger reports whether it is the larger blocks of each iteration that grow, and nothing is appended to them.
func (j *GrowthJudge) inputsGetLonger(g *growth) bool {
	return j.replacesEachIteration(g) && !j.appends(g)
}

// appends reports whether an operator built the growing memory from the previous contents and something new.
func (j *GrowthJudge) appends(g *growth) bool {
	return !slices.ContainsFunc(g.stacks, func(v profile.HeldStack) bool {
		return !strings.HasSuffix(profile.OperatorText(j.Resolver, v.ID), "::cat")
	})
}

// innerLines names, by the places that stacks count for, the program's own line that allocated all of it in a call from
// that place, where there is just one. by is how much each stack has of it.
func innerLines(places []callstack.Place, stacks []*callstack.Stack, by []uint64) map[string]string {
	inner := make(map[string]string)
	for i, p := range places {
		if by[i] == 0 {
			continue
		}
		at := ""
		if s := stacks[i]; s.Site != nil && s.Site.User && s.Key != p.Key && !strings.HasPrefix(s.Key, s.Backward) {
			at = s.Key
		}
		if known, seen := inner[p.Key]; seen && known != at {
			at = ""
		}
		inner[p.Key] = at
	}
	return inner
}

// owners names the places that grow.
func (j *GrowthJudge) owners(t *report.Trend, g *growth) {
	stacks := func(list []profile.HeldStack) []*callstack.Stack {
		named := make([]*callstack.Stack, len(list))
		for i, v := range list {
			named[i] = j.Resolver.Stacks.Of(callstack.PairOf(v.ID))
		}
		return named
	}
	bytes, user := make(map[string]uint64), make(map[string]bool)
	grown := stacks(g.stacks)
	places := j.Resolver.Stacks.Classifier.Specific(grown, g.by, stacks(g.others))
	inner := innerLines(places, grown, g.by)
	for i, p := range places {
		bytes[p.Key] += g.by[i]
		user[p.Key] = p.User
	}
	for key, n := range bytes {
		if n > 0 {
			t.Owners = append(t.Owners, report.TrendOwner{Site: key, User: user[key], Bytes: n, Inner: inner[key]})
		}
	}
	slices.SortFunc(t.Owners, func(x, y report.TrendOwner) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), strings.Compare(x.Site, y.Site))
	})
}
