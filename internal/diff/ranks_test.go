package diff

import (
	"testing"

	"memtrace/analyzer/report"
)

const mib = 1 << 20

// process is one with a rank and a peak on the device of the same number.
func process(rank int, peak uint64) RankProcess {
	s := &report.Summary{Process: report.Process{Rank: &rank, Host: "node1", PID: int64(100 + rank)}}
	s.Framework = report.Level{AllocCount: 1, PeakBytes: peak}
	s.Devices = []report.Device{{Index: int16(rank), Framework: s.Framework, Driver: s.Framework}}
	return RankProcess{Summary: s}
}

func TestOutlier(t *testing.T) {
	for _, test := range []struct {
		name           string
		peaks          []uint64
		oom            int // rank that ran out of memory, -1: none
		outlier, worst int
	}{
		{"alike", []uint64{100, 101, 100, 102}, -1, -1, 3},
		{"one above", []uint64{100, 140, 100, 101}, -1, 1, 1},
		{"one below", []uint64{100, 100, 101, 40}, -1, 3, 3},
		{"the one that failed comes first", []uint64{100, 140, 100, 101}, 2, 1, 2},
		{"two have no median", []uint64{100, 200}, -1, -1, 1},
		{"one", []uint64{100}, -1, -1, 0},
	} {
		var list []RankProcess
		for rank := len(test.peaks) - 1; rank >= 0; rank-- { // files in any order
			p := process(rank, test.peaks[rank]*mib)
			if rank == test.oom {
				p.Summary.OOM.Count = 1
			}
			list = append(list, p)
		}
		r := CompareRanks(list, "")
		for i, p := range r.Processes {
			if *p.Summary.Process.Rank != i || p.Device != int16(i) {
				t.Errorf("%s: place %d has rank %d on device %d", test.name, i, *p.Summary.Process.Rank, p.Device)
			}
		}
		if r.Outlier != test.outlier || r.Worst != test.worst || (r.Diff != nil) != (test.outlier >= 0) {
			t.Errorf("%s: outlier %d, worst %d; want %d and %d", test.name, r.Outlier, r.Worst, test.outlier,
				test.worst)
		}
	}
}

// TestStray: a little memory on another's device is a stray; a second device of its own, or equal memory on both, is
// not.
func TestStray(t *testing.T) {
	zero, one := process(0, 1000*mib), process(1, 1000*mib)
	add := func(p RankProcess, device int16, bytes uint64) {
		p.Summary.Devices = append(p.Summary.Devices,
			report.Device{Index: device, Driver: report.Level{AllocCount: 1, PeakBytes: bytes}})
	}
	add(one, 0, 400*mib)
	add(zero, 5, 2*mib)
	r := CompareRanks([]RankProcess{zero, one}, "")
	if len(r.Processes[0].Stray) != 0 {
		t.Errorf("rank 0 strays: %+v", r.Processes[0].Stray)
	}
	if s := r.Processes[1].Stray; len(s) != 1 || s[0] != (RankUse{0, 400 * mib}) {
		t.Errorf("rank 1 strays: %+v", s)
	}
	one.Summary.Devices[1].Driver.PeakBytes = 900 * mib
	if s := CompareRanks([]RankProcess{zero, one}, "").Processes[1].Stray; len(s) != 0 {
		t.Errorf("two devices in full use are strays: %+v", s)
	}
	one.Summary.Devices[1].Driver.PeakBytes = 2 * mib
	one.Summary.Process.Host = "node2"
	if s := CompareRanks([]RankProcess{zero, one}, "").Processes[1].Stray; len(s) != 0 {
		t.Errorf("a device of another host: %+v", s)
	}
}
