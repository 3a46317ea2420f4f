package diff

import (
	"cmp"
	"slices"

	"memtrace/analyzer/report"
)

// RankProcess is one of the processes.
type RankProcess struct {
	Path   string
	Head   *report.Head
	Device int16     // the one that it used most; -1: none
	Stray  []RankUse // other devices that it used a little of, each of which another process of its host uses most
	Group  int       // index in Ranks.Groups
}

// RankUse is the memory of a process on a device.
type RankUse struct {
	Device int16
	Bytes  uint64 // at most, of the driver's
}

// Ranks are the processes of one run, in the order of their ranks.
type Ranks struct {
	Processes []RankProcess
	Groups    []RankGroup     // those of most processes first
	Typical   int             // the process whose peak is the median, or the next one below it
	Worst     int             // to examine: one that ran out of memory, else the most different, else the highest
	Different []RankDifferent // the processes that differ, most first
	Growing   []int           // processes whose memory grows, unless all of them grow alike
	Growth    Spread          // bytes that an iteration adds, over all processes
	Missing   []int           // ranks that the launcher started and of which there is no trace
	Others    []RankProcess   // processes of another run, which are not compared
	Again     []RankProcess   // files of processes that others are of, too, which count once
	Twice     []int           // ranks of several processes
	Median    uint64          // of the peaks, in bytes

	features []map[string]uint64 // of each process, what it is compared by
}

// RankDifferent is a process that differs from those that it should be like.
type RankDifferent struct {
	Process int
	Like    int    // the process that it is compared with, of the nearest group
	Diff    *Diff  // from that one; nil of those behind MaxExplained
	Scale   *Scale // how its activations compare with those; nil where that explains nothing
}

// MaxExplained is how many of the different processes are compared in full.
const MaxExplained = 8

// strayPart is the part of a process's memory, as a divisor, up to which memory on another's device is a stray.
const strayPart = 2

// CompareRanks compares processes, at least one. load reads the whole report of one, and is called for few. category is
// the grouping by rules that may explain differences if no grouping was requested; see Diff.ShowDefaults. The errors
// are those of load.
func CompareRanks(list []RankProcess, load func(p *RankProcess) (*report.Summary, error), category string) (*Ranks,
	error) {
	r := &Ranks{}
	list, r.Again = distinct(list)
	r.Processes, r.Others = oneRun(list)
	byRank := func(a, b RankProcess) int {
		p, q := a.process(), b.process()
		return cmp.Or(cmp.Compare(rankOf(p), rankOf(q)), cmp.Compare(p.Host, q.Host), cmp.Compare(p.PID, q.PID),
			cmp.Compare(a.Path, b.Path))
	}
	slices.SortStableFunc(r.Processes, byRank)
	slices.SortStableFunc(r.Others, byRank)
	r.Missing, r.Twice = missing(r.Processes, worldOf(r.Processes)), twice(r.Processes)
	r.findStrays()
	r.findGroups()
	r.findDifferent()
	r.findGrowth()
	r.pick()
	return r, r.explain(load, category)
}

func (p *RankProcess) process() *report.Process { return &p.Head.Summary.Process }

func (p *RankProcess) peak() uint64 { return p.Head.Summary.Main().PeakBytes }

// rankOf sorts processes without a rank after the others.
func rankOf(p *report.Process) int {
	if p.Rank == nil {
		return 1 << 30
	}
	return *p.Rank
}

// pick chooses the typical process and the worst one.
func (r *Ranks) pick() {
	order := make([]int, len(r.Processes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(r.Processes[a].peak(), r.Processes[b].peak())
	})
	r.Typical, r.Worst = order[(len(order)-1)/2], order[len(order)-1]
	peaks := make([]uint64, len(r.Processes))
	for i := range peaks {
		peaks[i] = r.Processes[i].peak()
	}
	r.Median = report.Median(peaks)
	if len(r.Different) > 0 {
		r.Worst = r.Different[0].Process
	} else if len(r.Growing) > 0 {
		r.Worst = r.Growing[0]
	}
	for _, i := range order {
		if r.Processes[i].Head.Summary.OOM.Count > 0 {
			r.Worst = i
		}
	}
}

// explain compares the processes that differ most with those that they should be like.
func (r *Ranks) explain(load func(p *RankProcess) (*report.Summary, error), category string) error {
	like := map[int]*report.Summary{} // few groups: each is read once
	for i := range r.Different[:min(len(r.Different), MaxExplained)] {
		d := &r.Different[i]
		if like[d.Like] == nil {
			s, err := load(&r.Processes[d.Like])
			if err != nil {
				return err
			}
			like[d.Like] = s
		}
		base := like[d.Like]
		changed, err := load(&r.Processes[d.Process])
		if err != nil {
			return err
		}
		d.Diff, d.Scale = New(base, changed), scaleOf(base, changed)
		if !base.Asked {
			d.Diff.ShowDefaults(base, changed, category)
		}
	}
	return nil
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

// findStrays looks for devices that processes use in addition to their own and that belong to another process.
func (r *Ranks) findStrays() {
	type place struct {
		host   string
		device int16
	}
	owners := map[place]int{} // how many processes use it most
	for i := range r.Processes {
		p := &r.Processes[i]
		p.Device = mainDevice(p.Head.Summary)
		owners[place{p.process().Host, p.Device}]++
	}
	for i := range r.Processes {
		p := &r.Processes[i]
		var own uint64
		devices := p.Head.Summary.Devices
		for k := range devices {
			if devices[k].Index == p.Device {
				own = used(&devices[k])
			}
		}
		for k := range devices {
			d := &devices[k]
			if d.Index >= 0 && d.Index != p.Device && used(d) > 0 && used(d) <= own/strayPart &&
				owners[place{p.process().Host, d.Index}] > 0 {
				p.Stray = append(p.Stray, RankUse{d.Index, used(d)})
			}
		}
	}
}
