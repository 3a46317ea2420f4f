package report

// Growth says whether iterations leave more and more behind, as leaks do. Peaks would not tell: they follow the
// batches.
type Growth struct {
	Kind       string  // one of the constants above; the rest is zero unless it is GrowthSteady
	From, To   int     // indices of the iterations compared
	Bytes      int64   // by how much the end of To holds more than the end of From
	ByCategory []int64 // the same, in the order of Training.Categories
}

// PerIteration is the mean growth from one iteration to the next.
func (g Growth) PerIteration() int64 { return g.Bytes / int64(max(g.To-g.From, 1)) }

const (
	growthWindows = 4 // parts of the run whose floors must each lie above the one before
	growthSkipped = 1 // the first iteration, in which a program makes what it keeps
)

// Growth compares the floors of four parts of the run: batches of different sizes leave more and less behind, but only
// a leak lifts the least of it again and again.
func (t *Training) Growth() Growth {
	ended := 0
	for ended < len(t.Iterations) && (t.Iterations[ended].Ended || t.IsBefore(ended)) {
		ended++
	}
	if ended-growthSkipped < growthWindows {
		return Growth{Kind: GrowthUnknown}
	}
	var floors []int
	for w := range growthWindows {
		from, to := growthSkipped+(ended-growthSkipped)*w/growthWindows, growthSkipped+(ended-growthSkipped)*(w+1)/
			growthWindows
		floors = append(floors, from+lowestEnd(t.Iterations[from:to]))
	}
	for w := 1; w < growthWindows; w++ {
		if SumOf(t.Iterations[floors[w]].End) <= SumOf(t.Iterations[floors[w-1]].End) {
			return Growth{Kind: GrowthNone}
		}
	}
	g := Growth{Kind: GrowthSteady, From: floors[0], To: floors[growthWindows-1]}
	first, last := t.Iterations[g.From].End, t.Iterations[g.To].End
	for i := range min(len(first), len(last)) {
		g.ByCategory = append(g.ByCategory, int64(last[i]-first[i]))
		g.Bytes += int64(last[i] - first[i])
	}
	return g
}

// IsBefore reports whether what stands at an index is no iteration but the part of a compacted trace before the ones
// that are there: of that part only the highest peak is told.
func (t *Training) IsBefore(index int) bool {
	return index == 0 && len(t.Iterations) > 1 && !t.Iterations[0].Ended
}

// lowestEnd is the index of the first iteration that leaves least behind.
func lowestEnd(list []Iteration) int {
	lowest := 0
	for i := range list {
		if SumOf(list[i].End) < SumOf(list[lowest].End) {
			lowest = i
		}
	}
	return lowest
}

func SumOf(values []uint64) (sum uint64) {
	for _, v := range values {
		sum += v
	}
	return sum
}
