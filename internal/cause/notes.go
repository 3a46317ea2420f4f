package cause

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/internal/oom"
	"memtrace/trace"
)

// note is one caveat, a finding of the kind id: text returns it, or "" if it does not apply. It rests on evidence,
// and is about bytes; nil: about none.
type note struct {
	id       string
	text     func(s *report.Summary, info trace.Info) string
	bytes    func(s *report.Summary) uint64
	evidence []string
}

// notes in order of importance.
var notes = []note{
	{"truncated", noteTruncated, nil, []string{"health.truncated_at", "health.truncated_reason"}},
	{"no-end", noteNoEnd, nil, []string{"health.no_end"}},
	{"damaged", noteDamaged, nil, []string{"health.damaged"}},
	{"restored", noteRestored, nil, []string{"health.restored_at"}},
	{"altered", noteAltered, nil, []string{"health.altered"}},
	{"lost-records", noteLost, nil, []string{"lost_records", "health.lost_threads"}},
	{"in-flight", noteInFlight, nil, []string{"health.in_flight_calls"}},
	{"compacted", noteThinned, nil, []string{"thinned", "info." + trace.LimitKey}},
	{"not-drained", noteDrain, nil, []string{"info.drain"}},
	{"bypassed", noteBlind, nil, []string{"info.blind"}},
	{"unknown-calls", noteUnhooked, nil, []string{"health.unseen"}},
	{"no-calls", noteNothing, nil, []string{"driver", "framework", "filter"}},
	{"silent-framework", noteSilentTorch, nil, []string{"framework", "versions"}},
	{"no-sidecar", noteOOMReplay, nil, []string{"info." + trace.OOMReplayKey, "oom.events"}},
	{"started-late", noteStartedLate, nil, []string{"info." + trace.StartKey, "health.unmatched_frees",
		"health.unmatched_maps"}},
	{"snapshot", noteSnapshot, nil, []string{"process.snapshot"}},
	{"counters-differ", noteMismatches, nil, []string{"health.reserved_mismatches", "health.allocated_mismatches"}},
	{"negative-slack", noteSlack, nil, []string{"ledgers"}},
	{"estimated-sizes", noteEstimates, nil, []string{"health.estimated_sizes", "health.runtime_only"}},
	{"foreign-memory", noteForeign, foreignBytes, []string{"other_memory"}},
	{"implicit-frees", noteImplicit, implicitBytes, []string{"implicit_frees"}},
	{"cut-stacks", CutStacks, nil, []string{"health.stacks"}},
	{"nameless-functions", Nameless, nil, []string{"sites.places"}},
	{"names-missing", noteAdapters, nil, []string{"info.adapter"}},
	{"null-gpu", noteNullGPU, nil, []string{"null_gpu"}},
	{"imported", noteImported, nil, []string{"info." + ImportKindKey, "info.import.lacks"}},
}

// Notes returns the caveats that the reader needs to interpret the figures of s.
func Notes(s *report.Summary, info trace.Info) []report.Finding {
	list := []report.Finding{}
	for _, n := range notes {
		text := n.text(s, info)
		if text == "" {
			continue
		}
		bytes := uint64(0)
		if n.bytes != nil {
			bytes = n.bytes(s)
		}
		list = append(list, report.NewFinding(n.id, text, bytes, n.evidence...))
	}
	return list
}

func foreignBytes(s *report.Summary) uint64 { return s.Other[heap.AccountForeign.String()].PeakBytes }

func implicitBytes(s *report.Summary) (sum uint64) {
	for _, n := range s.Implicit {
		sum += n.Bytes
	}
	return sum
}

func noteTruncated(s *report.Summary, _ trace.Info) string {
	if !s.Health.Truncated {
		return ""
	}
	return fmt.Sprintf("The trace is cut or damaged at byte %d (%s); everything before that was read.",
		s.Health.TruncatedAt, s.Health.TruncatedReason)
}

func noteNoEnd(s *report.Summary, _ trace.Info) string {
	if s.Health.NoEnd == "" {
		return ""
	}
	return "The run has no end here, and the spool that held its last records is not beside it: " + s.Health.NoEnd +
		". Its process was killed or still runs, or the file was cut; what happened after the last event here may be missing."
}

func noteDamaged(s *report.Summary, _ trace.Info) string {
	d := s.Health.Damaged
	if d == nil {
		return ""
	}
	where := fmt.Sprintf("The trace is damaged at byte %d (%s)", d.At, d.Reason)
	if d.Stretches > 1 {
		where += fmt.Sprintf(" and in %s", report.Count(d.Stretches-1, "other place", "other places"))
	}
	return fmt.Sprintf("%s: %s could not be read, with %s in them. Everything else was read.", where,
		report.Count(uint64(d.Bytes), "byte", "bytes"), report.Count(d.Records, "record", "records"))
}

func noteRestored(s *report.Summary, _ trace.Info) string {
	if s.Health.Damaged != nil || s.Health.RestoredAt <= 0 {
		return ""
	}
	return fmt.Sprintf(
		"The trace is damaged at byte %d; what stood there was restored from its check bytes, and nothing is missing.",
		s.Health.RestoredAt)
}

func noteAltered(s *report.Summary, _ trace.Info) string {
	if s.Health.Altered == "" {
		return ""
	}
	return "The trace was changed after it was written (" + s.Health.Altered + "); every figure may be wrong."
}

func noteLost(s *report.Summary, _ trace.Info) string {
	var parts []string
	dropped := s.LostRecords
	if d := s.Health.Damaged; d != nil {
		dropped -= min(dropped, d.Records)
	}
	if dropped > 0 {
		parts = append(parts, report.Count(dropped, "record was", "records were")+
			" dropped because the rings were full")
	}
	if s.Health.LostRings > 0 {
		parts = append(parts, report.Count(s.Health.LostRings, "thread", "threads")+" could not be recorded")
	}
	if len(parts) == 0 {
		return ""
	}
	return upperFirst(strings.Join(parts, " and ")) +
		"; every figure may be wrong by what they held, within its bounds where it has some. " +
		"Raise MEMTRACE_SPOOL_HARD_MAX or MEMTRACE_SPOOL_MAX, and set MEMTRACE_OVERFLOW=wait."
}

// noteInFlight does not report a fault: the threads of a program that ends, or is killed, may be inside a call.
func noteInFlight(s *report.Summary, _ trace.Info) string {
	n := s.Health.InFlightCalls
	if n == 0 {
		return ""
	}
	if s.Process.Ended == report.EndedRunning {
		return upperFirst(report.Count(n, "call is", "calls are")) + " in flight; what they free is still counted."
	}
	return upperFirst(report.Count(n, "call was", "calls were")) +
		" in flight at the end; what they freed is still counted."
}

func noteDrain(_ *report.Summary, info trace.Info) string {
	reason, off := strings.CutPrefix(info["drain"], "off: ")
	if !off {
		return ""
	}
	return "The recorder could not write the trace while the program ran (" + reason +
		"); the records come from the spool."
}

// noteBlind repeats what the recorder could not observe.
func noteBlind(_ *report.Summary, info trace.Info) string {
	if info["blind"] == "" {
		return ""
	}
	return "The program bypassed the recorder (" + info["blind"] +
		"): memory that it allocated that way is missing from every figure. " +
		"To see how much that is, compare nvidia-smi with the device memory here; the CUDA context and code are part of the difference. " +
		"A library that is opened without RTLD_DEEPBIND can be seen."
}

// noteOOMReplay explains why there is no OOM text next to the trace where there should be one.
func noteOOMReplay(s *report.Summary, info trace.Info) string {
	unexplained := func(e report.OOMEvent) bool { return e.Outcome == report.OOMFailed && e.Sidecar == "" }
	if info[trace.OOMReplayKey] == "" || !slices.ContainsFunc(s.OOM.Events, unexplained) {
		return ""
	}
	return "The recorder's own table of live memory was " + info[trace.OOMReplayKey] +
		", so it wrote no text when memory ran out. " +
		"What this report says of that comes from the trace, and nothing is missing from it."
}

// noteUnhooked lists calls that a program requested in a version unknown to the recorder: they went to the driver
// unrecorded.
func noteUnhooked(_ *report.Summary, info trace.Info) string {
	const shown = 5
	calls := unhooked(info)
	if len(calls) == 0 {
		return ""
	}
	if more := len(calls) - shown; more > 0 {
		calls = append(calls[:shown], fmt.Sprintf("%d more", more))
	}
	return "The program uses newer versions of driver calls than this memtrace supports: " + strings.Join(calls, ", ") +
		". They work normally, but memory that they allocate is missing from every figure. Record with a newer memtrace, or with an older CUDA version."
}

func unhooked(info trace.Info) (calls []string) {
	for _, key := range slices.Sorted(maps.Keys(info)) {
		if name, ok := strings.CutPrefix(key, "unhooked."); ok {
			calls = append(calls, name+cudaVersion(info[key]))
		}
	}
	return calls
}

// Unhooked lists why memory may be missing from the trace although it is whole.
func Unhooked(info trace.Info) []string {
	list := append([]string{}, unhooked(info)...)
	if info["blind"] != "" {
		list = append(list, info["blind"])
	}
	return list
}

// cudaVersion writes 13040 as CUDA 13.4 does, in parentheses.
func cudaVersion(number string) string {
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil || n < 1000 {
		return ""
	}
	return fmt.Sprintf(" (CUDA %d.%d)", n/1000, n%1000/10)
}

func noteNothing(s *report.Summary, _ trace.Info) string {
	if !s.Driver.Empty() || !s.Framework.Empty() || len(s.Other) > 0 || len(s.Health.Unseen) > 0 {
		return ""
	}
	if len(s.Filter) > 0 {
		return "No allocation passes the filters."
	}
	return "The program made no CUDA memory call."
}

// noteSilentTorch explains why PyTorch is loaded but its level is empty. Without a reason, readers would take the empty
// level for an error.
func noteSilentTorch(s *report.Summary, info trace.Info) string {
	if info["framework.torch"] == "" || !s.Framework.Empty() || s.Driver.Empty() || len(s.Filter) > 0 {
		return ""
	}
	if strings.Contains(oom.AllocatorSettings(info), "backend:cudaMallocAsync") {
		return "PyTorch does not report its blocks under backend:cudaMallocAsync; the driver level is complete."
	}
	if _, off := info["env.PYTORCH_NO_CUDA_MEMORY_CACHING"]; off {
		return "PyTorch's caching allocator is switched off (PYTORCH_NO_CUDA_MEMORY_CACHING), so it reports no blocks; every tensor is a driver allocation and the driver level is complete."
	}
	return "PyTorch was loaded but reported no blocks: either it did not allocate, or another allocator was plugged in; the driver level is complete."
}

func noteMismatches(s *report.Summary, info trace.Info) string {
	var parts []string
	if n := s.Health.ReservedMismatches; n > 0 && info[trace.StartKey] != trace.StartedLate {
		parts = append(parts, "reserved bytes at "+report.Count(n, "event", "events"))
	}
	if n := s.Health.AllocatedMismatches; n > 0 {
		parts = append(parts, "allocated bytes at "+report.Count(n, "event", "events"))
	}
	if len(parts) == 0 {
		return ""
	}
	return "The framework's own counters differ from what was recorded: " + strings.Join(parts, ", ") +
		". Its values are listed as \"reported\" in the JSON report, next to the recorded ones."
}

func noteSlack(s *report.Summary, _ trace.Info) string {
	if !slices.ContainsFunc(s.Ledgers, func(l report.Ledger) bool { return l.SlackBytes < 0 }) {
		return ""
	}
	return "The framework counts more bytes in blocks than the driver gave it, so no slack is shown: part of its driver memory was not seen."
}

func noteEstimates(s *report.Summary, _ trace.Info) string {
	var parts []string
	if n := s.Health.EstimatedSizes; n > 0 {
		parts = append(parts, report.Count(n, "allocation has", "allocations have")+" an estimated size")
	}
	if n := s.Health.RuntimeOnly; n > 0 {
		parts = append(parts, report.Count(n, "was", "were")+" seen in the runtime only, with the requested size")
	}
	if len(parts) == 0 {
		return ""
	}
	return upperFirst(strings.Join(parts, "; ")) + "."
}

func noteForeign(s *report.Summary, _ trace.Info) string {
	if s.Other[heap.AccountForeign.String()].AllocCount == 0 {
		return ""
	}
	return "Memory opened from other processes is listed but not counted: it belongs to them."
}

// noteImplicit does not report a fault: programs that end rarely free everything, and a context destroyed in the middle
// of a run frees its memory intentionally.
func noteImplicit(s *report.Summary, _ trace.Info) string {
	var parts []string
	for a := range heap.AccountCount {
		if n := s.Implicit[a.String()]; n.Count > 0 {
			parts = append(parts, report.Count(n.Count, "block", "blocks")+" of "+accountWords[a]+" ("+
				report.SizeText(n.Bytes)+")")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Never freed by the program, ended with the context, graph or module that owned it: " +
		strings.Join(parts, ", ") +
		". If the program goes on with another context, free such memory before the old one is destroyed or reset."
}

// accountWords are the names of an account's memory in notes.
var accountWords = [heap.AccountCount]string{heap.AccountDriver: "device memory", heap.AccountFramework: "a framework",
	heap.AccountManaged: "managed memory",
	heap.AccountHost:    "pinned host memory", heap.AccountRegistered: "registered host memory",
	heap.AccountForeign: "opened memory", heap.AccountAddress: "address space",
	heap.AccountGraph: "graph nodes", heap.AccountMulticast: "multicast objects", heap.AccountOther: "other kinds"}

func noteNullGPU(s *report.Summary, _ trace.Info) string {
	if !s.NullGPU {
		return ""
	}
	return "The run used the null GPU: sizes are true, but there was no hardware, kernels did nothing, and results and times mean nothing."
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// ImportKindKey is the fact with the format of the file from which a trace was imported.
const ImportKindKey = "import.kind"

// noteImported lists what the imported file does not contain.
func noteImported(_ *report.Summary, info trace.Info) string {
	kind, lacks := info[ImportKindKey], info["import.lacks"]
	if kind == "" {
		return ""
	}
	return "Imported: " + kind + ". " + lacks
}
