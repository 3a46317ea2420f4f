package diff

import (
	"cmp"
	"math"
	"slices"

	"memtrace/analyzer/report"
)

// RankGroup are processes that are alike: each differs from another of the group by at most alikePart in what it held
// at its peak, in all and for each purpose. Stages of a pipeline and ranks with different experts are groups.
type RankGroup struct {
	Members []int   // in order
	Typical int     // the one whose peak is the median, or the next one below it
	Spread  float64 // the highest peak above the lowest, as a part of the typical one
	Some    bool    // it has too few processes to be one of the groups that a run is divided into
}

// alikePart is the part of the larger peak by which processes that are alike may differ.
const alikePart = 0.02

// fewPart is the part of the processes, as a divisor, that a group must exceed to be none of a few exceptions.
const fewPart = 8

// features are what is compared of a process: memory at the peak in all, and for each purpose. What the driver gave is
// left out where a framework's allocator asked for it: how much that keeps differs between processes that do the same.
func features(h *report.Head) map[string]uint64 {
	list := map[string]uint64{"": h.Summary.Main().PeakBytes}
	for _, c := range h.Categories {
		list[c.Name] = c.PeakBytes
	}
	return list
}

// distance is by how much two processes differ, as a part of the larger peak.
func distance(a, b map[string]uint64) float64 {
	most := uint64(0)
	for name, x := range a {
		most = max(most, gap(x, b[name]))
	}
	for name, x := range b {
		if _, both := a[name]; !both {
			most = max(most, x)
		}
	}
	if whole := max(a[""], b[""], 1); most > 0 {
		return float64(most) / float64(whole)
	}
	return 0
}

func gap(a, b uint64) uint64 { return max(a, b) - min(a, b) }

// findGroups joins processes that are alike. They are compared in the order of their peaks, up to those that are too
// far away by the peak alone.
func (r *Ranks) findGroups() {
	n := len(r.Processes)
	of := make([]map[string]uint64, n)
	order, group := make([]int, n), make([]int, n)
	for i := range n {
		of[i], order[i], group[i] = features(r.Processes[i].Head), i, i
	}
	r.features = of
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(of[a][""], of[b][""]) })
	var root func(i int) int
	root = func(i int) int {
		if group[i] != i {
			group[i] = root(group[i])
		}
		return group[i]
	}
	for k, i := range order {
		for _, j := range order[k+1:] {
			if float64(of[j][""]-of[i][""]) > alikePart*float64(of[j][""]) {
				break
			}
			if root(i) != root(j) && distance(of[i], of[j]) <= alikePart {
				group[max(root(i), root(j))] = min(root(i), root(j))
			}
		}
	}
	members := map[int][]int{}
	for i := range n {
		members[root(i)] = append(members[root(i)], i)
	}
	for _, list := range members {
		r.Groups = append(r.Groups, r.newGroup(list))
	}
	slices.SortFunc(r.Groups, func(a, b RankGroup) int {
		return cmp.Or(cmp.Compare(len(b.Members), len(a.Members)), cmp.Compare(a.Members[0], b.Members[0]))
	})
	for g := range r.Groups {
		size := len(r.Groups[g].Members)
		r.Groups[g].Some = 2*size <= len(r.Groups[0].Members) && size <= max(1, n/fewPart)
		for _, i := range r.Groups[g].Members {
			r.Processes[i].Group = g
		}
	}
}

func (r *Ranks) newGroup(members []int) RankGroup {
	order := slices.Clone(members)
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(r.Processes[a].peak(), r.Processes[b].peak())
	})
	g := RankGroup{Members: members, Typical: order[(len(order)-1)/2]}
	if low, high := r.Processes[order[0]].peak(), r.Processes[order[len(order)-1]].peak(); high > low {
		g.Spread = float64(high-low) / float64(r.Processes[g.Typical].peak())
	}
	return g
}

// findDifferent lists the processes of the groups of a few, and what they are nearest to. Two processes, or such as are
// all different, have nothing to be like.
func (r *Ranks) findDifferent() {
	if len(r.Processes) < 3 || len(r.Groups[0].Members) < 2 {
		return
	}
	far := map[int]float64{}
	for i := range r.Processes {
		if !r.Groups[r.Processes[i].Group].Some {
			continue
		}
		best, like := math.Inf(1), 0
		for g := range r.Groups {
			if group := &r.Groups[g]; !group.Some {
				if d := distance(r.features[i], r.features[group.Typical]); d < best {
					best, like = d, group.Typical
				}
			}
		}
		far[i] = best
		r.Different = append(r.Different, RankDifferent{Process: i, Like: like})
	}
	slices.SortStableFunc(r.Different, func(a, b RankDifferent) int {
		return cmp.Compare(far[b.Process], far[a.Process])
	})
}

// Spread is where most of some figures are: robust against a few that are far away.
type Spread struct {
	Median uint64
	MAD    uint64 // median of the absolute deviations from the median; 0 where more than half are equal
}

// SpreadOf returns the spread of some figures; zero without any.
func SpreadOf(values []uint64) (s Spread) {
	if len(values) == 0 {
		return s
	}
	s.Median = report.Median(values)
	away := make([]uint64, len(values))
	for i, v := range values {
		away[i] = gap(v, s.Median)
	}
	s.MAD = report.Median(away)
	return s
}

// Figures that are farther above the median than this are outliers: the MAD of a normal distribution, times 1.4826, is
// its standard deviation. Where most are equal, so that the MAD is nothing, a tenth of the median still is no outlier.
const (
	deviations = 5 * 1.4826
	leastPart  = 0.1
)

// Above reports whether a figure is an outlier above the others.
func (s Spread) Above(value uint64) bool {
	return value > s.Median && float64(value-s.Median) > max(deviations*float64(s.MAD), leastPart*float64(s.Median))
}

// findGrowth lists the processes that grow, and not as all others do.
func (r *Ranks) findGrowth() {
	rates, grow := make([]uint64, len(r.Processes)), 0
	for i := range r.Processes {
		if t := growthOf(r.Processes[i].Head.Summary); t != nil {
			rates[i] = max(t.BytesPerIteration, 1)
			grow++
		}
	}
	if 2*grow > len(rates) { // else the usual rate is none
		r.Growth = SpreadOf(rates)
	}
	for i, rate := range rates {
		if r.Growth.Above(rate) {
			r.Growing = append(r.Growing, i)
		}
	}
	slices.SortStableFunc(r.Growing, func(a, b int) int { return cmp.Compare(rates[b], rates[a]) })
}

// growthOf is the growth of the memory that a report is about; nil if it does not grow.
func growthOf(s *report.Summary) *report.Trend {
	if list := s.Growing(); len(list) > 0 {
		return list[0]
	}
	return nil
}
