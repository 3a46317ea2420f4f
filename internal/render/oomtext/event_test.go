package oomtext

import (
	"strings"
	"testing"

	"memtrace/analyzer/report"
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
