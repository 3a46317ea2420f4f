package analyzer

import (
	"maps"

	"memtrace/analyzer/heap"
	"memtrace/analyzer/report"
	"memtrace/trace"
)

// OOMWatch tells OOM events while the trace is being written. It replays every event, so its cost is that of a replay without groupings, and its memory is
// bounded by the live blocks, of which each takes at most 48 bytes. It is not safe for use by several goroutines.
type OOMWatch struct {
	collector *collector
	tables    *trace.Tables
	info      trace.Info
	found     []*report.OOMReport
	last      int64 // time of the latest event
}

// NewOOMWatch returns a watch over events whose dictionary the caller keeps in tables, and what is known of the run in info; both may grow. Its tables of live blocks get at most so many bytes
// of memory, see Short. It is to be closed.
func NewOOMWatch(tables *trace.Tables, info trace.Info, most int64) *OOMWatch {
	w := &OOMWatch{collector: newCollector(tables, nil, nil, At{}), tables: tables, info: info}
	w.collector.heap = heap.NewPackedHeap(w.collector, most)
	w.collector.ooms.info = func() trace.Info { return info }
	w.collector.ooms.told, w.collector.ooms.places = w.take, true
	stacks := w.collector.resolver.stacks
	stacks.Info, stacks.Options.NoFiles, stacks.Limit = w.collector.ooms.info, true, maxOOMStacks
	return w
}

func (w *OOMWatch) take(e *report.OOMEvent) {
	r := &report.OOMReport{Versions: versions(w.info), NullGPU: w.info["nullgpu"] == "1", Event: *e}
	r.Process = processOf(w.info)
	r.Process.Ended, r.Process.DurationNS = report.EndedRunning, w.last
	for _, d := range w.tables.Devices() {
		r.Devices = append(r.Devices, report.Device{Index: d.Index, Name: d.Name, UUID: d.UUID, TotalBytes: d.TotalBytes})
	}
	w.found = append(w.found, r)
}

// Apply replays events in the order of the trace.
func (w *OOMWatch) Apply(events []trace.Event) {
	for i := range events {
		w.collector.event(&events[i])
		w.last = max(w.last, events[i].Time)
	}
}

// Short reports whether there was no room for the live blocks any more, and how many there are. The watch is right until then, and still is, but takes more memory than it should.
func (w *OOMWatch) Short() (blocks int, short bool) {
	return w.collector.heap.Len(), w.collector.heap.Short()
}

// Close gives the memory back. The watch is not to be used any more.
func (w *OOMWatch) Close() { w.collector.heap.Free() }

// Pending reports whether an OOM event waits for what comes next. Where nothing comes for long, Finish ends it.
func (w *OOMWatch) Pending() bool { return len(w.collector.ooms.open) > 0 }

// Finish ends all events: nothing more will come.
func (w *OOMWatch) Finish() { w.collector.finishOOM() }

// Take returns the OOM events that ended since the last call, in the order in which they did.
func (w *OOMWatch) Take() []*report.OOMReport {
	found := w.found
	w.found = nil
	return found
}

// Counts returns how often memory ran out, and how often it was granted after all.
func (w *OOMWatch) Counts() (failed, recovered uint64) {
	return w.collector.ooms.Count, w.collector.ooms.RecoveredCount
}

// UpdateInfo adds to what is known of the run.
func (w *OOMWatch) UpdateInfo(info trace.Info) { maps.Copy(w.info, info) }
