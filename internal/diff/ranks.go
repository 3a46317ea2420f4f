package diff

import (
	"cmp"
	"slices"

	"memtrace/analyzer/report"
)

// RankProcess is one of the processes.
type RankProcess struct {
	Path    string
	Summary *report.Summary
	Device  int16     // the one that it used most; -1: none
	Stray   []RankUse // other devices that it used a little of, each of which another process of its host uses most
}

// RankUse is the memory of a process on a device.
type RankUse struct {
	Device int16
	Bytes  uint64 // at most, of the driver's
}

// Ranks are the processes of one run, in the order of their ranks.
type Ranks struct {
	Processes []RankProcess
	Typical   int    // the process whose peak is the median
	Worst     int    // the process to examine: one that ran out of memory, else the one with the highest peak
	Outlier   int    // the process whose peak differs most from the median, if by more than a twentieth; -1: none
	Diff      *Diff  // from the typical process to the outlier; nil without one
	Scale     *Scale // how the outlier's activations compare with the typical ones; nil where that explains nothing
}

// outlierPart is the part of the median, as a divisor, by which a peak may differ.
const outlierPart = 20

// strayPart is the part of a process's memory, as a divisor, up to which memory on another's device is a stray.
const strayPart = 2

// CompareRanks compares processes, at least one. category is the grouping by rules that may explain differences if no
// grouping was requested; see Diff.ShowDefaults.
func CompareRanks(list []RankProcess, category string) *Ranks {
	r := &Ranks{Processes: slices.Clone(list), Outlier: -1}
	slices.SortStableFunc(r.Processes, func(a, b RankProcess) int {
		p, q := a.Summary.Process, b.Summary.Process
		return cmp.Or(cmp.Compare(rankOf(p), rankOf(q)), cmp.Compare(p.Host, q.Host), cmp.Compare(p.PID, q.PID),
			cmp.Compare(a.Path, b.Path))
	})
	for i := range r.Processes {
		r.Processes[i].Device = mainDevice(r.Processes[i].Summary)
	}
	for i := range r.Processes {
		r.findStray(&r.Processes[i])
	}
	r.pick(category)
	return r
}

// rankOf sorts processes without a rank after the others.
func rankOf(p report.Process) int {
	if p.Rank == nil {
		return 1 << 30
	}
	return *p.Rank
}

// pick chooses the typical process, the worst one and the outlier.
func (r *Ranks) pick(category string) {
	order := make([]int, len(r.Processes))
	for i := range order {
		order[i] = i
	}
	peak := func(i int) uint64 { return r.Processes[i].Summary.Main().PeakBytes }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(peak(a), peak(b)) })
	r.Typical, r.Worst = order[(len(order)-1)/2], order[len(order)-1]
	for _, i := range order {
		if r.Processes[i].Summary.OOM.Count > 0 {
			r.Worst = i
		}
	}
	if len(order) < 3 { // of two, neither is typical
		return
	}
	median := peak(r.Typical)
	away := func(i int) uint64 { return max(peak(i), median) - min(peak(i), median) }
	most := slices.MaxFunc(order, func(a, b int) int { return cmp.Compare(away(a), away(b)) })
	if away(most) > median/outlierPart {
		r.Outlier = most
		base, changed := r.Processes[r.Typical].Summary, r.Processes[most].Summary
		r.Diff, r.Scale = New(base, changed), scaleOf(base, changed)
		if !base.Asked {
			r.Diff.ShowDefaults(base, changed, category)
		}
		if r.Processes[r.Worst].Summary.OOM.Count == 0 {
			r.Worst = most
		}
	}
}

// mainDevice is the device on which a process had most.
func mainDevice(s *report.Summary) int16 {
	best, most := int16(-1), uint64(0)
	for i := range s.Devices {
		if d := &s.Devices[i]; d.Index >= 0 && used(d) > most {
			best, most = d.Index, used(d)
		}
	}
	return best
}

func used(d *report.Device) uint64 { return max(d.Driver.PeakBytes, d.Framework.PeakBytes) }

// findStray looks for devices that a process uses in addition to its own and that belong to another process.
func (r *Ranks) findStray(p *RankProcess) {
	var own uint64
	for i := range p.Summary.Devices {
		if d := &p.Summary.Devices[i]; d.Index == p.Device {
			own = used(d)
		}
	}
	for i := range p.Summary.Devices {
		d := &p.Summary.Devices[i]
		if d.Index < 0 || d.Index == p.Device || used(d) == 0 || used(d) > own/strayPart {
			continue
		}
		if slices.ContainsFunc(r.Processes, func(q RankProcess) bool {
			return q.Device == d.Index && q.Summary.Process.Host == p.Summary.Process.Host && q.Summary != p.Summary
		}) {
			p.Stray = append(p.Stray, RankUse{d.Index, used(d)})
		}
	}
}
