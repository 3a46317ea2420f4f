package oom

import (
	"memtrace/analyzer/report"
	"memtrace/trace"
)

// keptEvent is an event with what its JSON leaves out.
type keptEvent struct {
	report.OOMEvent
	Sizes    report.SizesAt
	Through  []report.Ledger
	Seen     report.OOMSeen
	Division *report.Division
}

// KeepRun keeps what Keep leaves out: the events so far, and the attempts after them. The error is that of one that
// JSON cannot hold.
func (t *Tracker) KeepRun(s *trace.State) error {
	n := s.Table("run.oom")
	n.Put(t.Count, t.RecoveredCount, t.RefusedCount, uint64(len(t.Events)))
	for i := range t.Events {
		e := &t.Events[i]
		if err := n.PutJSON(&keptEvent{*e, e.Sizes, e.Through, e.Seen, e.Division}); err != nil {
			return err
		}
	}
	for i := range t.Retries {
		if err := n.PutJSON(&t.Retries[i]); err != nil {
			return err
		}
	}
	return nil
}

// RestoreRun brings back what KeepRun kept, behind Restore.
func (t *Tracker) RestoreRun(s *trace.State) {
	n := s.Table("run.oom")
	t.OOM = report.OOM{Count: n.Next(), RecoveredCount: n.Next(), RefusedCount: n.Next()}
	for range min(n.Next(), MaxEvents) {
		var kept keptEvent
		n.JSON(&kept)
		e := kept.OOMEvent
		e.Sizes, e.Through, e.Seen, e.Division = kept.Sizes, kept.Through, kept.Seen, kept.Division
		t.Events = append(t.Events, e)
	}
	for n.More() && len(t.Retries) < maxRetries {
		var v report.OOMRetries
		n.JSON(&v)
		t.Retries = append(t.Retries, v)
	}
}
