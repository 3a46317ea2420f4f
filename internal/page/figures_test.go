package page

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
)

// The figures at the top: the peak, the reserved memory, the share of the fullest device, and growth.
func TestFigures(t *testing.T) {
	s := &report.Summary{Framework: report.Level{AllocCount: 1, PeakBytes: 3 << 30, PeakTimeNS: 46_509e6},
		Devices: []report.Device{
			{Index: 0, TotalBytes: 16 << 30, ReservedBytesPeak: 4 << 30, Driver: report.Level{PeakBytes: 4 << 30}},
			{Index: 1, TotalBytes: 8 << 30, ReservedBytesPeak: 1 << 30, Driver: report.Level{PeakBytes: 6 << 30}},
		},
		Trend: &report.Trend{Level: report.LevelFramework, Kind: report.GrowthSteady, Bytes: 100 << 20,
			FromTimeNS: 6e9, BytesPerSecond: 2 << 20}}
	var lines []string
	for _, f := range figures(s) {
		lines = append(lines, fmt.Sprint(f.Name, "|", f.Value, "|", f.Note, "|", f.Alarm))
	}
	want := []string{"peak|3.00 GiB|of the framework, at +46.509 s|false",
		"reserved|4.00 GiB|by framework on device 0|false",
		"share of the device|75.0%|8.00 GiB on device 1|false", "growth|2.00 MiB/s|100.0 MiB since +6.000 s|true"}
	if !slices.Equal(lines, want) {
		t.Errorf("%q\nwant\n%q", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	for used, want := range map[uint64]string{1: "< 0.1%", 8 << 30 / 10: "10.0%", 8 << 30: "100.0%"} {
		s.Devices[0].TotalBytes, s.Devices[1].Driver.PeakBytes = 0, used
		if f := figures(s); f[2].Value != want {
			t.Errorf("%d bytes are %s of 8 GiB, want %s", used, f[2].Value, want)
		}
	}
	s.Trend.Kind = report.GrowthNone
	if f := figures(s); f[3].Value != "none" || f[3].Alarm {
		t.Errorf("%+v", f[3])
	}
	if f := figures(&report.Summary{}); f != nil {
		t.Errorf("%+v of a run that allocated nothing", f)
	}
}

// Repeated modules are one group on the page, each of them another; both add up to the same.
func TestFoldedModules(t *testing.T) {
	h := &report.History{By: []string{"module"}}
	d := data{By: h.By, Keys: [][]string{{"(no module)"}}, Owners: []owner{{Keys: []int{0}}}}
	for i := range 12 {
		d.Keys[0] = append(d.Keys[0], fmt.Sprintf("net.h.%d.attn", i))
		d.Owners = append(d.Owners, owner{Keys: []int{1 + i}})
		h.Blocks = append(h.Blocks, report.HistoryBlock{Size: uint64(100 + i), Died: 9, Owner: uint32(1 + i)})
	}
	d.foldModules(h, &report.Summary{})
	if !slices.Equal(d.By, []string{"module", "each module"}) || len(d.Keys[1]) != 13 ||
		!slices.Equal(d.Keys[0], []string{"(no module)", "net.h.{0..11}.attn"}) {
		t.Fatalf("%v, %v", d.By, d.Keys)
	}
	for i, o := range d.Owners {
		if want := []int{min(i, 1), i}; !slices.Equal(o.Keys, want) {
			t.Errorf("owner %d: %v, want %v", i, o.Keys, want)
		}
	}
}
