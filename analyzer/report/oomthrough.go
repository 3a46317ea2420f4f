package report

import "slices"

// DetailedOOM is the index of the out-of-memory event that a report tells in full: the first one that failed, 0 if none
// did. There must be an event.
func (s *Summary) DetailedOOM() int {
	return max(slices.IndexFunc(s.OOM.Events, func(e OOMEvent) bool { return e.Outcome == OOMFailed }), 0)
}

// ThroughLedger returns the event's blocks by "inner", "operator" or "module"; nil if they are not told.
func (e *OOMEvent) ThroughLedger(by string) *Ledger {
	for i := range e.Through {
		if e.Through[i].By == by {
			return &e.Through[i]
		}
	}
	return nil
}

// DrivenByLibrary reports whether one line of the program asked for most of the blocks and lines of a library beneath
// it say more, as where a trainer runs the loop.
func (e *OOMEvent) DrivenByLibrary() bool {
	inner := e.ThroughLedger("inner")
	top, found := e.Ledger("site").Largest(OwnerBlocks, func(r LedgerRow) bool { return KnownKey(r.Key) })
	if inner == nil || !found || top.Bytes < blockBytes(inner)/2 {
		return false
	}
	own, _ := inner.Largest(OwnerBlocks, func(r LedgerRow) bool { return r.Key == top.Key })
	return own.Bytes < top.Bytes/2
}

func blockBytes(l *Ledger) (sum uint64) {
	for i := range l.Rows {
		if l.Rows[i].Owner == OwnerBlocks {
			sum += l.Rows[i].Bytes
		}
	}
	return sum
}
