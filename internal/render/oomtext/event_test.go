package oomtext

import (
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// The largest hole is compared with the request, if it is smaller.
func TestLargestHole(t *testing.T) {
	a := &report.OOMAllocator{ReservedBytes: 100 << 20, AllocatedBytes: 60 << 20, IdleBytes: 40 << 20}
	a.Pieces.FreePieces, a.Pieces.LargestFreeBytes = 7, 8<<20
	if got := cacheWords(a, 32<<20, "PyTorch"); !strings.HasSuffix(got,
		"in 7 pieces; the largest free block is 8.00 MiB, 25.0% of the request") {
		t.Error(got)
	}
	if got := cacheWords(a, 8<<20, "PyTorch"); !strings.HasSuffix(got, "the largest free block is 8.00 MiB") {
		t.Error(got)
	}
}

// A failed run that ran out of memory reports it next to its exit status; one that handled it, or did not fail, does
// not.
func TestRanOut(t *testing.T) {
	one, zero := 1, 0
	for _, c := range []struct {
		status *int
		count  uint64
		torch  string
		want   string
	}{
		{&one, 1, "2.7.1", "exit status after torch.OutOfMemoryError"},
		{&one, 2, "", "exit status after running out of memory"},
		{&one, 0, "2.7.1", "exit status"},
		{&zero, 3, "2.7.1", "exit status"},
		{nil, 3, "2.7.1", "exit status"},
	} {
		s := &report.Summary{Versions: map[string]string{"torch": c.torch}}
		s.Process.ExitStatus, s.OOM.Count = c.status, c.count
		if got := RanOut(s, "exit status"); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// Of many requests that were granted in the end, each had a line that said the same. They are one line with a count.
func TestGrantedRequestsAreOneLine(t *testing.T) {
	event := func(outcome string, at int64, mib uint64) report.OOMEvent {
		return report.OOMEvent{Outcome: outcome, TimeNS: at * 1e9, RequestedBytes: mib << 20, ReleasedBytes: mib << 21}
	}
	o := &report.OOM{Count: 2, RecoveredCount: 4, Events: []report.OOMEvent{event(report.OOMRecovered, 1, 10),
		event(report.OOMFailed, 2, 20), event(report.OOMRecovered, 3, 30), event(report.OOMFailed, 4, 40),
		event(report.OOMRecovered, 5, 5)}}
	var text strings.Builder
	writeOthers(layout.NewPage(&text, layout.Options{}), o, 1)
	got := strings.Fields(text.String())
	want := strings.Fields(`Other out-of-memory events
		- oom:4 at +4.000 s: 40.0 MiB requested on device 0
		- 3 requests of at most 30.0 MiB were granted after at most 60.0 MiB were given back: the first oom:1 at +1.000 s,
		the last oom:5 at +5.000 s
		and 1 time more`)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
