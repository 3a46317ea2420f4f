package diff

import (
	"fmt"
	"slices"
	"testing"

	"memtrace/analyzer/report"
)

const mib = 1 << 20

// process is one with a rank and a peak on the device of the same number.
func process(rank int, peak uint64) RankProcess {
	s := &report.Summary{Process: report.Process{Rank: &rank, Host: "node1", PID: int64(100 + rank)}}
	s.Framework = report.Level{AllocCount: 1, PeakBytes: peak}
	s.Devices = []report.Device{{Index: int16(rank), Framework: s.Framework, Driver: s.Framework}}
	return RankProcess{Path: fmt.Sprintf("%d.bin", rank), Head: report.HeadOf(s)}
}

// compare compares processes whose reports are their heads.
func compare(t *testing.T, list []RankProcess) *Ranks {
	t.Helper()
	r, err := CompareRanks(list, func(p *RankProcess) (*report.Summary, error) { return p.Head.Summary, nil }, "")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// different lists the processes that differ, most first.
func different(r *Ranks) (list []int) {
	for _, d := range r.Different {
		list = append(list, d.Process)
	}
	return list
}

// TestMedianPeak: the median of an even number of ranks was the lower of the two in the middle here, the upper one of
// iterations, and their mean in the recipes in SQL. It is their mean everywhere; the typical process is one of them.
func TestMedianPeak(t *testing.T) {
	for _, test := range []struct {
		peaks   []uint64
		median  uint64
		typical int
	}{{[]uint64{10, 40, 20, 60}, 30, 2}, {[]uint64{10, 40, 20}, 20, 2}, {[]uint64{50, 20}, 35, 1},
		{[]uint64{7}, 7, 0}} {
		var list []RankProcess
		for rank, peak := range test.peaks {
			list = append(list, process(rank, peak))
		}
		if r := compare(t, list); r.Median != test.median || r.Typical != test.typical {
			t.Errorf("%v: median %d, typical %d; want %d and %d", test.peaks, r.Median, r.Typical, test.median,
				test.typical)
		}
	}
	if s := SpreadOf([]uint64{10, 40, 20, 60}); s.Median != 30 || s.MAD != 15 {
		t.Errorf("%+v", s)
	}
}

// TestSameProcess: a process counts once, whichever of its files comes first, also where a copy that was made to be
// shared has no host; others are not taken for it.
func TestSameProcess(t *testing.T) {
	type change func(p *report.Process)
	shot := func(after int64) change { return func(p *report.Process) { p.Snapshot, p.DurationNS = true, after } }
	job := func(number string) change { return func(p *report.Process) { p.Job = number } }
	noID, noBegin := func(p *report.Process) { p.PID = 0 }, func(p *report.Process) { p.Started = "" }
	for what, test := range map[string]struct {
		changes []change
		counts  int
	}{
		"a copy":             {[]change{nil, nil, nil}, 1},
		"a stripped copy":    {[]change{func(p *report.Process) { p.Host = "" }, nil}, 1},
		"another host":       {[]change{func(p *report.Process) { p.Host = "node2" }, nil}, 2},
		"another job":        {[]change{job("7"), job("8")}, 2},
		"no job":             {[]change{job("7"), job("")}, 1},
		"another id":         {[]change{func(p *report.Process) { p.PID++ }, nil}, 2},
		"no id":              {[]change{noID, noID}, 2},
		"no begin":           {[]change{noBegin, noBegin}, 2},
		"the next recording": {[]change{func(p *report.Process) { p.Started = "2026-11-27T08:00:01Z" }, nil}, 2},
		"snapshots":          {[]change{shot(1), shot(2), shot(1), nil}, 3},
	} {
		var list []RankProcess
		for _, change := range test.changes {
			p := process(1, 100)
			p.process().Started, p.process().DurationNS = "2026-11-27T08:00:00.123456789Z", 5
			if change != nil {
				change(p.process())
			}
			list = append(list, p)
		}
		r := compare(t, list)
		// of one rank, those that were over before the last one began are of another run
		if n := len(r.Processes) + len(r.Others); n != test.counts || len(r.Again) != len(list)-test.counts {
			t.Errorf("%s: %d count, %d again; want %d", what, n, len(r.Again), test.counts)
		}
	}
}

func TestDifferent(t *testing.T) {
	for _, test := range []struct {
		name      string
		peaks     []uint64
		oom       int // rank that ran out of memory, -1: none
		different []int
		worst     int
		groups    int
	}{
		{"identical", []uint64{100, 100, 100, 100}, -1, nil, 3, 1},
		{"alike", []uint64{100, 101, 100, 102}, -1, nil, 3, 1},
		{"one above", []uint64{100, 140, 100, 101}, -1, []int{1}, 1, 2},
		{"one below", []uint64{100, 100, 101, 40}, -1, []int{3}, 3, 2},
		{"the one that failed comes first", []uint64{100, 140, 100, 101}, 2, []int{1}, 2, 2},
		{"two have no median", []uint64{100, 200}, -1, nil, 1, 2},
		{"one", []uint64{100}, -1, nil, 0, 1},
		{"all different", []uint64{100, 200, 300, 400}, -1, nil, 3, 4},
		{"two stages", []uint64{100, 200, 100, 200, 100, 200}, -1, nil, 5, 2},
		{"one of two stages", []uint64{100, 200, 100, 200, 150, 200, 100, 200}, -1, []int{4}, 4, 3},
		{"the farthest first", []uint64{100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 110, 190},
			-1, []int{15, 14}, 15, 3},
		{"every rank a little more", []uint64{100, 101, 102, 103, 104, 105, 106, 107}, -1, nil, 7, 1},
	} {
		var list []RankProcess
		for rank := len(test.peaks) - 1; rank >= 0; rank-- { // files in any order
			p := process(rank, test.peaks[rank]*mib)
			if rank == test.oom {
				p.Head.Summary.OOM.Count = 1
			}
			list = append(list, p)
		}
		r := compare(t, list)
		for i, p := range r.Processes {
			if *p.process().Rank != i || p.Device != int16(i) {
				t.Errorf("%s: place %d has rank %d on device %d", test.name, i, *p.process().Rank, p.Device)
			}
		}
		if got := different(r); !slices.Equal(got, test.different) || r.Worst != test.worst ||
			len(r.Groups) != test.groups {
			t.Errorf("%s: %v differ, worst %d, %d groups; want %v, %d and %d", test.name, got, r.Worst, len(r.Groups),
				test.different, test.worst, test.groups)
		}
		for _, d := range r.Different {
			if d.Diff == nil || r.Groups[r.Processes[d.Like].Group].Some {
				t.Errorf("%s: %d is not compared with one of a large group", test.name, d.Process)
			}
		}
	}
}

// TestPurposes: equal peaks that are made of different things are not alike.
func TestPurposes(t *testing.T) {
	var list []RankProcess
	for rank := range 6 {
		p := process(rank, 100*mib)
		p.Head.Categories = []report.Purpose{{Name: "Parameters", PeakBytes: 60 * mib},
			{Name: "Feature maps", PeakBytes: 40 * mib}}
		if rank == 2 {
			p.Head.Categories[0].PeakBytes, p.Head.Categories[1].PeakBytes = 50*mib, 50*mib
		}
		list = append(list, p)
	}
	if got := different(compare(t, list)); !slices.Equal(got, []int{2}) {
		t.Errorf("%v differ", got)
	}
}

// TestGrowing: who grows while others do not, or much more than others do, is named; where all grow alike nobody is,
// and the common rate is known. With identical ranks nothing is divided by their deviation, which is zero.
func TestGrowing(t *testing.T) {
	for _, test := range []struct {
		name    string
		rates   []uint64
		growing []int
		median  uint64
	}{
		{"nobody", []uint64{0, 0, 0, 0}, nil, 0},
		{"one", []uint64{0, 0, 64, 0}, []int{2}, 0},
		{"two", []uint64{0, 64, 0, 0, 128, 0}, []int{4, 1}, 0},
		{"all alike", []uint64{64, 64, 64, 64}, nil, 64},
		{"all, one more", []uint64{64, 64, 64, 640}, []int{3}, 64},
		{"all, one a little more", []uint64{64, 66, 62, 70}, nil, 65},
		{"one of two", []uint64{0, 64}, []int{1}, 0}, // half of them is not most
		{"half", []uint64{64, 0, 64, 0}, []int{0, 2}, 0},
		{"more than half", []uint64{64, 0, 64, 64}, nil, 64},
	} {
		var list []RankProcess
		for rank, rate := range test.rates {
			p := process(rank, 100*mib)
			p.Head.Summary.Trend = &report.Trend{Kind: report.GrowthNone}
			if rate > 0 {
				p.Head.Summary.Trend = &report.Trend{Kind: report.GrowthSteady, BytesPerIteration: rate}
			}
			list = append(list, p)
		}
		if r := compare(t, list); !slices.Equal(r.Growing, test.growing) || r.Growth.Median != test.median {
			t.Errorf("%s: %v grow, all by %d", test.name, r.Growing, r.Growth.Median)
		}
	}
}

// TestOneRun: processes of another job, of another number of ranks, or of an earlier time are left out, and ranks
// without a process are missing. A rank may have several processes at a time.
func TestOneRun(t *testing.T) {
	const minute = 60 * 1e9
	at := func(rank int, started, job string) RankProcess {
		p := process(rank, 100*mib)
		v := p.process()
		v.Started, v.DurationNS, v.Job, v.WorldSize = "2026-11-27T"+started+":00Z", 10*minute, job, 4
		p.Path = fmt.Sprintf("%d at %s", rank, started)
		return p
	}
	wider := at(2, "08:00", "")
	wider.process().WorldSize = 8
	nameless := process(0, 100*mib)
	nameless.process().Rank = nil
	for _, test := range []struct {
		name    string
		list    []RankProcess
		others  []string
		missing []int
	}{
		{"whole", []RankProcess{at(0, "08:00", ""), at(1, "08:00", ""), at(2, "08:01", ""), at(3, "08:00", "")}, nil,
			nil},
		{"one missing", []RankProcess{at(0, "08:00", ""), at(1, "08:00", ""), at(3, "08:00", "")}, nil, []int{2}},
		{"an earlier one", []RankProcess{at(0, "08:00", ""), at(1, "08:00", ""), at(2, "08:01", ""), at(3, "08:00", ""),
			at(2, "07:00", "")}, []string{"2 at 07:00"}, nil},
		{"two at a time", []RankProcess{at(0, "08:00", ""), at(1, "08:00", ""), at(2, "08:00", ""), at(2, "08:05", ""),
			at(3, "08:00", "")}, nil, nil},
		{"another job", []RankProcess{at(0, "08:00", "7"), at(1, "08:00", "7"), at(3, "09:00", "8")},
			[]string{"3 at 09:00"}, []int{2, 3}},
		{"two of each, not later", []RankProcess{at(0, "08:00", "8"), at(1, "08:00", "8"), at(2, "08:00", "7"),
			at(3, "08:00", "7")}, []string{"2 at 08:00", "3 at 08:00"}, []int{2, 3}},
		{"another world", []RankProcess{at(0, "08:00", ""), at(1, "08:00", ""), wider}, []string{"2 at 08:00"},
			[]int{2, 3}},
		{"without ranks", []RankProcess{nameless, nameless}, nil, nil},
	} {
		r := compare(t, test.list)
		var others []string
		for _, p := range r.Others {
			others = append(others, p.Path)
		}
		if !slices.Equal(others, test.others) || !slices.Equal(r.Missing, test.missing) ||
			len(r.Processes)+len(r.Others) != len(test.list) {
			t.Errorf("%s: others %v, missing %v; want %v and %v", test.name, others, r.Missing, test.others,
				test.missing)
		}
	}
}

// TestStray: a little memory on another's device is a stray; a second device of its own, or equal memory on both, is
// not.
func TestStray(t *testing.T) {
	zero, one := process(0, 1000*mib), process(1, 1000*mib)
	add := func(p RankProcess, device int16, bytes uint64) {
		p.Head.Summary.Devices = append(p.Head.Summary.Devices,
			report.Device{Index: device, Driver: report.Level{AllocCount: 1, PeakBytes: bytes}})
	}
	add(one, 0, 400*mib)
	add(zero, 5, 2*mib)
	r := compare(t, []RankProcess{zero, one})
	if len(r.Processes[0].Stray) != 0 {
		t.Errorf("rank 0 strays: %+v", r.Processes[0].Stray)
	}
	if s := r.Processes[1].Stray; len(s) != 1 || s[0] != (RankUse{0, 400 * mib}) {
		t.Errorf("rank 1 strays: %+v", s)
	}
	one.Head.Summary.Devices[1].Driver.PeakBytes = 900 * mib
	if s := compare(t, []RankProcess{zero, one}).Processes[1].Stray; len(s) != 0 {
		t.Errorf("two devices in full use are strays: %+v", s)
	}
	one.Head.Summary.Devices[1].Driver.PeakBytes = 2 * mib
	one.process().Host = "node2"
	if s := compare(t, []RankProcess{zero, one}).Processes[1].Stray; len(s) != 0 {
		t.Errorf("a device of another host: %+v", s)
	}
}
