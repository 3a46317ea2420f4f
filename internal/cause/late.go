package cause

import "slices"

const (
	// statePart is how many times as much as the parameters their gradients and optimizer state may be: there is one
	// gradient, and no optimizer of note keeps more than three states.
	statePart = 4
	latePart  = 80 // percent of the growth that they must be
)

// allocatedLate reports whether what grew is gradients and optimizer state, and no more of them than the parameters
// need: they are made when they are first needed, such as by a layer that is trained from then on.
func (j *GrowthJudge) allocatedLate(g *growth) bool {
	t := j.Summary.Training
	if t == nil || t.Level != g.account.String() {
		return false
	}
	first, last := -1, -1
	for i := range t.Iterations {
		if it := &t.Iterations[i]; it.Ended {
			if first < 0 || it.EndNS <= j.times[g.from] {
				first = i
			}
			last = i
		}
	}
	of := func(category string, iteration int) uint64 {
		if i := slices.Index(t.Categories, category); i >= 0 && i < len(t.Iterations[iteration].End) {
			return t.Iterations[iteration].End[i]
		}
		return 0
	}
	if first == last {
		return false
	}
	before := of("Gradients", first) + of("Optimizer state", first)
	after := of("Gradients", last) + of("Optimizer state", last)
	return after > before && (after-before)*100 >= g.bytes*latePart && after <= statePart*of("Parameters", last)
}
