//go:build e2e

package e2e

import (
	"testing"

	"memtrace/cuda"
	"memtrace/internal/render"
	"memtrace/trace"
)

// byLibraries reports a trace by the preset and checks that the categories add up to what is tracked.
func byLibraries(t *testing.T, trace string, args ...string) render.Document {
	t.Helper()
	p := jsonReport(t, trace, append(args, "--rules", "libraries")...)
	if len(p.Categories) != 1 {
		t.Fatalf("%d groupings", len(p.Categories))
	}
	var sum uint64
	for _, row := range p.Categories[0].Rows {
		sum += row.Bytes
	}
	equal(t, "sum over the categories", sum, p.Categories[0].TrackedBytes)
	return p
}

// only fails the test unless everything that was allocated, at any time, is of the categories.
func only(t *testing.T, p render.Document, want ...string) {
	t.Helper()
	known := map[string]bool{}
	for _, key := range want {
		known[key] = true
	}
	seen := 0
	for _, g := range p.Groups {
		if g.By != p.Categories[0].By {
			continue
		}
		for _, row := range g.Rows {
			seen++
			if !known[row.Key] {
				t.Errorf("%s, %d bytes at its peak: not one of %q", row.Key, row.PeakBytes, want)
			}
		}
	}
	if seen == 0 {
		t.Error("nothing was sorted")
	}
}

// blockOf is a block as the driver's functions returned it.
type blockOf struct {
	size uint64
	mem  cuda.MemoryKind
}

// liveAt replays the allocations and frees of a trace up to a mark: the blocks by address, one map for each device.
func liveAt(t *testing.T, path, mark string) map[int16]map[uint64]blockOf {
	t.Helper()
	events, r := readEvents(t, path)
	tables, live := r.Tables(), map[int16]map[uint64]blockOf{}
	for _, e := range events {
		switch {
		case e.Kind == trace.EventMark && tables.String(e.Name) == mark:
			return live
		case e.Status != 0 || e.Level != cuda.LevelDriver:
		case e.Kind == trace.EventAlloc:
			if live[e.Device] == nil {
				live[e.Device] = map[uint64]blockOf{}
			}
			live[e.Device][e.Addr] = blockOf{e.Size, e.Mem}
		case e.Kind == trace.EventFree:
			for _, blocks := range live {
				delete(blocks, e.Addr)
			}
		}
	}
	t.Fatalf("%s has no mark %q", path, mark)
	return nil
}

// sum adds up the blocks of one kind.
func sum(blocks map[uint64]blockOf, mem cuda.MemoryKind) (total uint64) {
	for _, b := range blocks {
		if b.mem == mem {
			total += b.size
		}
	}
	return total
}
