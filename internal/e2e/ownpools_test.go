//go:build e2e

package e2e

import (
	"path/filepath"
	"testing"

	"memtrace/analyzer/report"
)

// TestOwnPools: a program has pools of its own beside PyTorch's allocator. PyTorch's counters agree with PyTorch's
// blocks to the byte, the pool's blocks and what it took are added to them, and a pool inside of a tensor is counted
// apart.
func TestOwnPools(t *testing.T) {
	t.Parallel()
	r := program{framework: torch27, args: []string{"own_pools.py", "account.json"}}.record(t)
	var account struct{ Allocated, Reserved, Arena, Chunk, Cache uint64 }
	readJSON(t, filepath.Join(r.dir, "account.json"), &account)
	rep := jsonReport(t, r.trace)
	d := rep.Devices[0]
	if f := rep.Framework.PeakBytes; f != account.Allocated+account.Arena {
		t.Errorf("%d bytes of blocks, want %d of PyTorch's and %d of the pool", f, account.Allocated, account.Arena)
	}
	if d.ReservedBytesPeak != account.Reserved+account.Chunk {
		t.Errorf("%d reserved, want %d and %d", d.ReservedBytesPeak, account.Reserved, account.Chunk)
	}
	if other := rep.Other["other"].PeakBytes; other != account.Cache {
		t.Errorf("%d bytes in the tensor, want %d", other, account.Cache)
	}
	if h := rep.Health; h.AllocatedMismatches+h.ReservedMismatches > 0 || d.Reported == nil ||
		d.Reported.AllocatedBytesPeak != account.Allocated {
		t.Errorf("PyTorch's own counters: %+v, %d and %d disagree", d.Reported, h.AllocatedMismatches,
			h.ReservedMismatches)
	}
	l := rep.Ledgers[0]
	if l.SlackBytes != int64(account.Reserved+account.Chunk-account.Allocated-account.Arena) {
		t.Errorf("%d bytes of slack", l.SlackBytes)
	}
	for _, row := range l.Rows {
		if row.Owner == report.OwnerOutside && row.Bytes != 7<<20 {
			t.Errorf("outside of PyTorch and the pool: %+v", row)
		}
	}
}
