package oom

import (
	"maps"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

// Watch tells OOM events while the trace is being written. It replays every event, so its cost is that of a replay
// without groupings, and its memory is bounded by the live blocks, of which each takes at most 48 bytes. It is not safe
// for use by several goroutines.
type Watch struct {
	replay *replay
	tables *trace.Tables
	info   trace.Info
	found  []*report.OOMReport
	after  []report.OOMRetries
	last   int64 // time of the latest event
	kept   bool  // the first failure of a framework's allocator was told, with what kept its tensors
	over   bool
	usual  usual
}

// NewWatch returns a watch over events whose dictionary the caller keeps in tables, and what is known of the run in
// info; both may grow. Its tables of live blocks get at most so many bytes of memory, see Short. It is to be closed.
func NewWatch(tables *trace.Tables, info trace.Info, most int64) *Watch {
	w := &Watch{replay: newReplay(tables, most), tables: tables, info: info,
		usual: usual{devices: make(map[int16]*iterationsOn), refused: make(map[uint64]comparedWith)}}
	tracker := &w.replay.tracker
	tracker.Info = func() trace.Info { return info }
	tracker.Ended, tracker.Places = w.take, true
	tracker.Settled = func(r report.OOMRetries) { w.after = append(w.after, r) }
	stacks := w.replay.resolver.Stacks
	stacks.Info, stacks.Options.NoFiles, stacks.Limit = tracker.Info, true, maxStacks
	return w
}

func (w *Watch) take(e *report.OOMEvent) {
	w.usual.tell(e)
	r := &report.OOMReport{Versions: report.Versions(w.info), NullGPU: w.info["nullgpu"] == "1", Event: *e}
	report.AddPools(r.Versions, w.replay.resolver.OwnPools())
	r.Process = report.ProcessOf(w.info)
	r.Process.Ended, r.Process.DurationNS = report.EndedRunning, w.last
	for _, d := range w.tables.Devices() {
		r.Devices = append(r.Devices, report.Device{Index: d.Index, Name: d.Name, UUID: d.UUID,
			TotalBytes: d.TotalBytes})
	}
	w.found = append(w.found, r)
}

// LimitStacks bounds the call stacks that are named for an event; what asks for memory with another one is told by its
// thread.
func (w *Watch) LimitStacks(n int) { w.replay.resolver.Stacks.Limit = n }

// Apply replays events in the order of the trace.
func (w *Watch) Apply(events []trace.Event) {
	for i := range events {
		w.usual.event(&events[i])
		w.replay.event(&events[i])
		w.last = max(w.last, events[i].Time)
	}
}

// Short reports whether there was no room for the live blocks any more, and how many there are. The watch is right
// until then, and still is, but takes more memory than it should.
func (w *Watch) Short() (blocks int, short bool) {
	return w.replay.heap.Len(), w.replay.heap.Short()
}

// Close gives the memory back. The watch is not to be used any more.
func (w *Watch) Close() { w.replay.heap.Free() }

// Pending reports whether an OOM event waits for what comes next. Where nothing comes for long, Finish ends it.
func (w *Watch) Pending() bool { return w.replay.tracker.Pending() || len(w.found) > 0 }

// searches reports whether the program waits for what keeps its tensors alive.
func (w *Watch) searches() bool {
	return w.info[trace.ReferrersBegunKey] != "" && w.info[trace.ReferrersKey] == "" &&
		w.info[trace.ReferrersSkippedKey] == ""
}

// Finish ends all events: nothing more will come.
func (w *Watch) Finish() { w.replay.tracker.Finish() }

// End ends all events and the waiting for attempts that succeed: the run is over.
func (w *Watch) End() {
	w.over = true
	w.Finish()
	w.replay.tracker.settle()
}

// TakeRetries returns what came after failures, as far as no more is waited for, since the last call.
func (w *Watch) TakeRetries() []report.OOMRetries {
	after := w.after
	w.after = nil
	return after
}

// Take returns the OOM events that ended since the last call, in the order in which they did. They wait for what keeps
// the program's tensors alive while the library looks for that.
func (w *Watch) Take() []*report.OOMReport {
	if w.searches() && !w.over {
		return nil
	}
	found := w.found
	w.found = nil
	for _, r := range found {
		if e := &r.Event; !w.kept && e.Level == "framework" && e.Outcome == report.OOMFailed {
			w.kept = true
			r.KeptBy = report.KeptByAt(w.info, e)
			Differentiated(e, r.KeptBy)
		}
	}
	return found
}

// Counts returns how often memory ran out, and how often it was granted after all.
func (w *Watch) Counts() (failed, recovered uint64) {
	return w.replay.tracker.Count, w.replay.tracker.RecoveredCount
}

// UpdateInfo adds to what is known of the run.
func (w *Watch) UpdateInfo(info trace.Info) { maps.Copy(w.info, info) }
