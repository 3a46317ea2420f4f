package analyzer

import (
	"memtrace/analyzer/report"
	"memtrace/internal/cause"
	"memtrace/internal/moment"
	"memtrace/trace"
)

// ender is a source that knows whether the process still runs.
type ender interface{ Ended() string }

func (q *query) process() report.Process {
	src := q.src
	p := report.ProcessOf(src.Info())
	p.Ended, p.DurationNS = report.EndedKilled, q.replayer.lastTime
	if src.Health().Truncated {
		p.Ended = report.EndedUnknown
	}
	if end, ok := src.End(); ok {
		p.Ended = report.EndedClean
		p.DurationNS = max(p.DurationNS, end.Time)
	}
	if e, ok := src.(ender); ok {
		p.Ended = e.Ended()
	}
	if p.Ended == report.EndedUnknown { // what was read of it is not all
		p.ExitStatus, p.Signal = nil, ""
	}
	return p
}

// health joins what the reader, the recorder and the replay know of missing pieces.
func (q *query) health() (lostRecords uint64, health report.Health) {
	src, holdings := q.src, &q.replayer.device.Holdings
	t, h := src.Health(), q.replayer.heap.Health()
	records, rings, dict := src.Lost()
	// A killed run has no end section, and its lost events are all that is known; otherwise they repeat what the
	// recorder says.
	lostRecords = max(records, q.replayer.losses.count)
	health = report.Health{
		Truncated: t.Truncated, TruncatedAt: t.TruncatedAt, TruncatedReason: t.Reason, RestoredAt: t.Restored.At,
		Altered: t.Altered, RepeatedEvents: t.Repeated, Bytes: t.Bytes, Events: t.Events, LateEvents: t.LateEvents,
		UnknownEvents: t.UnknownEvents, SkippedSections: t.SkippedSections, SequenceGaps: t.Gaps,
		InFlightCalls: t.InFlight, LostRings: rings, LostDictionary: dict,
		UnmatchedFrees: h.UnmatchedFrees, UnmatchedMaps: h.UnmatchedMaps + h.UnmatchedUnmaps,
		DisplacedBlocks: h.Displaced, LateFrees: h.LateFrees,
		LateAllocs: h.LateAllocs, FailedFrees: h.FailedFrees, ImplausibleSizes: h.ImplausibleSizes,
		UnmatchedReferences: h.UnmatchedReferences,
		ImplicitFrees:       h.ImplicitFrees, EstimatedSizes: q.accounts.estimated,
		RuntimeOnly:         q.accounts.runtimeOnly,
		ReservedMismatches:  holdings.ReservedMismatches,
		AllocatedMismatches: holdings.AllocatedMismatches, ReservedFrom: holdings.Source(),
		Unseen: cause.Unhooked(src.Info()), NoEnd: t.NoEnd,
	}
	if t.Torn.Stretches > 0 {
		torn := report.Torn(t.Torn)
		health.Damaged = &torn
	}
	// A block whose free came late, or is in flight, was closed by its successor, and nothing is missing; nor is it
	// where its successor was in flight when recording ended, after which no free is recorded.
	var unrecorded uint64
	if end, ok := src.End(); ok {
		unrecorded = q.replayer.heap.DisplacedSince(end.Time)
	}
	late := src.Info()[trace.StartKey] == trace.StartedLate // then memory is given back that nobody saw being taken
	unmatched := h.UnmatchedFrees + h.UnmatchedMaps + h.UnmatchedReferences + h.UnmatchedUnmaps
	health.Complete = t.NoEnd == "" && lostRecords == 0 && rings == 0 && dict == 0 && !t.Truncated &&
		t.Torn.Stretches == 0 && t.Altered == "" && t.Repeated == 0 && t.Gaps == 0 && t.UnknownEvents == 0 &&
		(unmatched == 0 || late) && h.Displaced <= h.LateFrees+t.InFlight+unrecorded && h.ImplausibleSizes == 0
	return lostRecords, health
}

// words lists the window and the filters, in the order in which people think of them.
func (o *Options) words() []string {
	words := []string{}
	if window := moment.WindowWords(o.From, o.To); window != "" {
		words = append(words, window)
	}
	selection := o.selection()
	return append(words, selection.Words()...)
}
