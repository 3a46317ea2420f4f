package cause

import (
	"testing"

	"memtrace/analyzer/report"
)

// Idle memory has a reason where one explains most of it and it is a large part of what is used.
func TestWasteOf(t *testing.T) {
	const mib = 1 << 20
	whole := report.Fragments{FreeBytes: 300 * mib, WholeFreeBytes: 200 * mib}
	gaps := report.Fragments{FreeBytes: 300 * mib, WholeFreeBytes: 100 * mib}
	pools := []report.PrivatePool{{Number: 2, ReservedBytes: 150 * mib, IdleBytes: 120 * mib},
		{Number: 4, ReservedBytes: 100 * mib, IdleBytes: 100 * mib}}
	for _, c := range []struct {
		name     string
		idle     report.IdleMemory
		peak     uint64
		settings string
		streams  int
		version  string
		want     *Waste
	}{
		{"segments", report.IdleMemory{All: whole, Common: whole}, 1000 * mib, "", 1, "2.7.1",
			&Waste{Why: WasteSegments, Bytes: 200 * mib, CouldGrow: true}},
		{"segments of several streams", report.IdleMemory{All: whole, Common: whole}, 1000 * mib, "", 2, "2.7.1",
			&Waste{Why: WasteSegments, Bytes: 200 * mib}},
		{"segments that grow already", report.IdleMemory{All: whole, Common: whole}, 1000 * mib,
			"Expandable_Segments:True", 1, "2.7.1", &Waste{Why: WasteSegments, Bytes: 200 * mib}},
		{"segments that cannot grow", report.IdleMemory{All: whole, Common: whole}, 1000 * mib, "", 1, "2.0.1",
			&Waste{Why: WasteSegments, Bytes: 200 * mib}},
		{"gaps", report.IdleMemory{All: gaps, Common: gaps}, 1000 * mib, "", 1, "2.7.1",
			&Waste{Why: WasteGaps, Bytes: 200 * mib, CouldGrow: true}},
		{"private pools", report.IdleMemory{All: gaps, Private: pools}, 1000 * mib, "", 1, "2.7.1",
			&Waste{Why: WastePools, Bytes: 220 * mib, Pools: 2, Frees: 100 * mib}},
		{"little", report.IdleMemory{All: whole, Common: whole}, 2000 * mib, "", 1, "2.7.1", nil},
		{"nothing that explains most", report.IdleMemory{All: report.Fragments{FreeBytes: 500 * mib}, Common: gaps,
			Private: pools}, 1000 * mib, "", 1, "2.7.1", nil},
	} {
		s := &report.Summary{IdleAtPeak: &c.idle, Versions: map[string]string{"torch": c.version},
			Allocator: &report.Allocator{StreamCount: c.streams, Settings: []report.Setting{{Text: c.settings}}}}
		s.Framework.PeakBytes = c.peak
		got := WasteOf(s)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if got := WasteOf(&report.Summary{Versions: map[string]string{"torch": "2.7.1"}}); got != nil {
		t.Errorf("of nothing: %+v", got)
	}
}
