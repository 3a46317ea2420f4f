package oom

import (
	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// CanKeep reports whether a keyframe can hold the tracker: not while an event waits for what comes next.
func (t *Tracker) CanKeep() bool { return !t.Pending() }

// Keep keeps what an event behind a keyframe is told from; names of tables begin with "oom.".
func (t *Tracker) Keep(s *trace.State) {
	n := s.Table("oom.tracker")
	n.Put(t.sinceSeq, t.stepped.first, t.stepped.last, uint64(t.failed), uint64(t.recovered), uint64(t.pictures),
		uint64(t.number))
	n.PutSigned(t.lastPicture)
	if n.PutBool(t.since != nil); t.since != nil {
		n.PutText(t.since.What)
		n.PutSigned(t.since.TimeNS)
	}
	for _, kept := range t.steps {
		n.Put(uint64(len(kept)))
		n.Put(kept...)
	}
	if t.retrying.waiting && len(t.Retries) > 0 {
		t.retrying.keep(s.Table("oom.retrying"), t.Retries)
	}
}

// Restore brings back what Keep kept.
func (t *Tracker) Restore(s *trace.State) {
	n := s.Table("oom.tracker")
	t.sinceSeq, t.stepped = n.Next(), stepSpan{n.Next(), n.Next()}
	t.failed, t.recovered, t.pictures, t.number = int(n.ID()), int(n.ID()), int(n.ID()), int(n.ID())
	t.lastPicture = n.Signed()
	if n.Bool() {
		t.since = &report.OOMGrowth{What: n.Text(), TimeNS: n.Signed()}
	}
	for n.More() && len(t.steps) < heap.MaxSlots {
		var kept []uint64
		for range min(n.Next(), maxSteps) {
			kept = append(kept, n.Next())
		}
		t.steps = append(t.steps, kept)
	}
	if n := s.Table("oom.retrying"); n.More() {
		t.Retries = t.retrying.take(n)
	}
}

func (r *retrying) keep(n *trace.Numbers, list []report.OOMRetries) {
	n.Put(uint64(r.pystack), uint64(r.looked), uint64(r.begun), uint64(r.ended), r.first, r.last, uint64(len(list)))
	v := &list[len(list)-1]
	n.PutSigned(int64(v.Device))
	n.Put(retriesCounts(v)...)
	n.PutSigned(v.FirstTimeNS, v.LastTimeNS, v.LeftTimeNS, v.GrantedTimeNS, v.AsMuchTimeNS, v.StepTimeNS)
	n.Put(uint64(r.thread))
}

// take returns the list, of which only the last one is told.
func (r *retrying) take(n *trace.Numbers) []report.OOMRetries {
	*r = retrying{waiting: true, pystack: trace.StackID(n.ID()), looked: int(n.ID()), begun: int(n.ID()),
		ended: int(n.ID()), first: n.Next(), last: n.Next()}
	list := make([]report.OOMRetries, min(max(n.Next(), 1), maxRetries))
	v := &list[len(list)-1]
	v.Device = int16(n.Signed())
	v.FailedCount, v.FirstRequestedBytes, v.RequestedBytes = n.Next(), n.Next(), n.Next()
	v.LeftBytes, v.LiveBytes, v.GrantedBytes, v.AsMuchBytes = n.Next(), n.Next(), n.Next(), n.Next()
	v.FirstTimeNS, v.LastTimeNS, v.LeftTimeNS = n.Signed(), n.Signed(), n.Signed()
	v.GrantedTimeNS, v.AsMuchTimeNS, v.StepTimeNS = n.Signed(), n.Signed(), n.Signed()
	if n.More() { // traces of before have no thread
		r.thread = trace.ThreadID(n.Next())
	}
	return list
}

func retriesCounts(v *report.OOMRetries) []uint64 {
	return []uint64{v.FailedCount, v.FirstRequestedBytes, v.RequestedBytes, v.LeftBytes, v.LiveBytes, v.GrantedBytes,
		v.AsMuchBytes}
}
