package report

// At is a level whose peak is what was live at a moment.
func (l Level) At(m MomentLevel) Level {
	l.PeakBytes, l.PeakBytesLower = m.LiveBytes, m.LiveBytesLower
	return l
}

// Moment returns what a module and those below it held at a moment, by category.
func (m *Module) Moment(name string) []uint64 {
	for i := range m.Moments {
		if m.Moments[i].Moment == name {
			return m.Moments[i].Subtree
		}
	}
	return nil
}

// Trains reports whether a framework said what its memory is.
func (s *Summary) Trains() bool { return s.Training != nil && len(s.Training.Parameters) > 0 }

// HeldAtOOM returns what the level's memory was for at an event, nil if that is not known.
func (t *Training) HeldAtOOM(e *OOMEvent) *OOMCategories {
	if e.Outcome != OOMFailed || e.Level != LevelFramework {
		return nil
	}
	for i := range t.OutOfMemory {
		if m := &t.OutOfMemory[i]; m.TimeNS >= e.TimeNS {
			return m
		}
	}
	return nil
}

// Largest returns the first row of an owner's kind for which keep is true.
func (l *Ledger) Largest(owner string, keep func(LedgerRow) bool) (row LedgerRow, found bool) {
	for _, r := range l.Rows {
		if r.Owner == owner && keep(r) && (!found || r.Bytes > row.Bytes) {
			row, found = r, true
		}
	}
	return row, found
}
