package analyzer

import (
	"memtrace/analyzer/report"
	"memtrace/internal/device"
)

// idleWatch notes where the idle memory of the framework's allocator is when its blocks have their peak.
type idleWatch struct {
	seq  uint64        // order number of the allocation that makes the peak; 0: not known
	then *device.Cache // nil: not seen
}

// look is called after each event.
func (w *idleWatch) look(r *replayer, seq uint64, index int16) {
	if seq == w.seq && r.device.Holdings.FromDriver() {
		cache := r.device.Fragments(r.heap, r.accounts.resolver.Libraries, index)
		w.then = &cache
	}
}

// value returns nil where the parts do not account for all of the idle memory at the peak.
func (w *idleWatch) value(s *report.Summary) *report.IdleMemory {
	if w.then == nil || s.Window != nil || w.then.All.FreeBytes != s.Verdict().IdleBytes {
		return nil
	}
	return &report.IdleMemory{All: w.then.All, Common: w.then.Common, Private: w.then.Private}
}
