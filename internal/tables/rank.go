package tables

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/symbol"
)

// Rank is what is known of one rank after its trace was read.
type Rank struct {
	number  int32
	trace   string
	summary *report.Summary
	held    []held
	stacks  map[uint64]int64 // ids of stacks by analyzer.StackRow.Key
	named   []namedStack     // each id once
}

// held is what a level held at its peak and at the end, or at another moment.
type held struct {
	set    *analyzer.StackSet
	moment string // "": the first two
}

// NewRank returns a rank. trace is the name of its file, the summary has tags, and training where there is any; the
// sets are those of the levels that were used, with the labels of Labels.
func NewRank(number int32, trace string, summary *report.Summary, sets []*analyzer.StackSet) *Rank {
	r := &Rank{number: number, trace: trace, summary: summary, stacks: make(map[uint64]int64)}
	r.add("", sets)
	return r
}

// AddMoment adds what the levels held at a moment of Summary.NamedMoments; the sets are of a replay that was told to
// keep it.
func (r *Rank) AddMoment(name string, sets []*analyzer.StackSet) { r.add(name, sets) }

func (r *Rank) add(moment string, sets []*analyzer.StackSet) {
	seen := make(map[int64]bool)
	for i := range r.named {
		seen[r.named[i].Stack.Stack] = true
	}
	for _, set := range sets {
		r.held = append(r.held, held{set, moment})
		n := &namer{set: set, frames: make(map[symbol.Frame]Frame)}
		for i := range set.Rows {
			row := &set.Rows[i]
			if _, known := r.stacks[row.Key]; known {
				continue
			}
			stack := n.stack(row.Frames)
			r.stacks[row.Key] = stack.Stack.Stack
			if !seen[stack.Stack.Stack] {
				seen[stack.Stack.Stack] = true
				r.named = append(r.named, stack)
			}
		}
	}
}

// Complete reports whether nothing of the run is missing: neither in the trace, nor because the program still ran when
// it was read.
func (r *Rank) Complete() bool {
	ended := r.summary.Process.Ended
	return r.summary.Health.Complete && ended != report.EndedRunning && ended != report.EndedUnknown
}

// Labels are the groupings that Rank.Sets must have, with the name of the one of categories in front.
func Labels(categories string) []string { return []string{categories, "module", "tag", "device"} }

// The moments of profiles.
const (
	momentPeak = "peak"
	momentExit = "exit"
)

// Add writes the rows of a rank but its blocks and events. Ranks must come in ascending order.
func (w *Writer) Add(r *Rank) error {
	s := r.summary
	w.runs.add(runOf(r))
	for i := range s.Devices {
		d := &s.Devices[i]
		w.devices.add(Device{Rank: r.number, Device: int32(d.Index), Name: text(d.Name), UUID: text(d.UUID),
			Total: int64(d.TotalBytes), FrameworkPeak: int64(d.Framework.PeakBytes),
			ReservedPeak: int64(d.ReservedBytesPeak), DriverPeak: int64(d.Driver.PeakBytes),
			Reported: reported(s.DeviceLedger, d.Index)})
	}
	w.addStacks(r)
	for _, share := range Shares(r) {
		w.profiles.add(share)
	}
	w.addSteps(r)
	w.addTags(r)
	for _, h := range s.Heights {
		for i, bytes := range h.PeakBytes {
			w.samples.add(Sample{Rank: r.number, Level: h.Level, From: h.FromNS + int64(i)*h.WidthNS, Width: h.WidthNS,
				Peak: int64(bytes)})
		}
	}
	return cmp.Or(w.runs.failed(), w.profiles.failed(), w.samples.failed(), w.stacks.failed())
}

// reported is the most that a device counted for the process, context and code included. r may be nil.
func reported(r *report.DeviceReport, device int16) (most int64) {
	if r == nil {
		return 0
	}
	for i := range r.Devices {
		if r.Devices[i].Index != device {
			continue
		}
		for _, sample := range r.Devices[i].Samples {
			most = max(most, int64(sample.OwnBytes))
		}
	}
	return most
}

func runOf(r *Rank) Run {
	s := r.summary
	p := &s.Process
	started, _ := time.Parse(time.RFC3339Nano, p.Started) // the zero time, which is null, where it is not known
	row := Run{Rank: r.number, Ranked: p.Rank != nil, WorldSize: int32(p.WorldSize), Trace: text(r.trace), PID: p.PID,
		Command: text(p.Command), Host: text(p.Host), Pod: text(p.Pod), Started: started, Duration: p.DurationNS,
		Ended: p.Ended, Versions: make(map[string]string, len(s.Versions)), Complete: r.Complete(),
		Lost: int64(s.LostRecords), OOM: int64(s.OOM.Count),
		FrameworkPeak: int64(s.Framework.PeakBytes), FrameworkPeakAt: s.Framework.PeakTimeNS,
		FrameworkLive: int64(s.Framework.LiveBytes), FrameworkAllocs: int64(s.Framework.AllocCount),
		FrameworkSum: int64(s.Framework.AllocBytes),
		DriverPeak:   int64(s.Driver.PeakBytes), DriverPeakAt: s.Driver.PeakTimeNS,
		DriverLive: int64(s.Driver.LiveBytes), DriverAllocs: int64(s.Driver.AllocCount),
		DriverSum: int64(s.Driver.AllocBytes)}
	for name, version := range s.Versions {
		row.Versions[text(name)] = text(version)
	}
	return row
}

// addStacks writes the stacks that no earlier rank had, and their frames.
func (w *Writer) addStacks(r *Rank) {
	for _, stack := range r.named {
		if w.names.stacks[stack.Stack.Stack] {
			continue
		}
		w.names.stacks[stack.Stack.Stack] = true
		w.stacks.add(stack.Stack)
		for _, f := range stack.frames {
			if !w.names.frames[f.Frame] {
				w.names.frames[f.Frame] = true
				w.frames.add(f)
			}
		}
	}
}

// Shares divides the levels of a rank among their owners: at each level's peak, at the end and at the moments that were
// added, most first.
func Shares(r *Rank) []Share {
	sums := make(map[Share]int64) // by everything but the bytes
	for _, held := range r.held {
		for i := range held.set.Rows {
			row := &held.set.Rows[i]
			key := Share{Rank: r.number, Level: held.set.Level, Stack: r.stacks[row.Key], Device: -1}
			if l := row.Labels; len(l) == len(Labels("")) {
				key.Category, key.Module, key.Tag = text(l[0]), text(l[1]), text(l[2])
				if device, err := strconv.ParseInt(l[3], 10, 32); err == nil {
					key.Device = int32(device)
				}
			}
			moments := map[string]uint64{momentPeak: row.PeakBytes, momentExit: row.LiveBytes}
			if held.moment != "" {
				moments = map[string]uint64{held.moment: row.PeakBytes}
			}
			for moment, bytes := range moments {
				if key.Moment = text(moment); bytes > 0 {
					sums[key] += int64(bytes)
				}
			}
		}
	}
	shares := make([]Share, 0, len(sums))
	for share, bytes := range sums {
		share.Bytes = bytes
		shares = append(shares, share)
	}
	slices.SortFunc(shares, func(a, b Share) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Moment, b.Moment), cmp.Compare(b.Bytes, a.Bytes),
			cmp.Compare(a.Category, b.Category), cmp.Compare(a.Module, b.Module), cmp.Compare(a.Tag, b.Tag),
			cmp.Compare(a.Device, b.Device), cmp.Compare(a.Stack, b.Stack))
	})
	return shares
}

func (w *Writer) addSteps(r *Rank) {
	t := r.summary.Training
	if t == nil || t.IterationsBy == report.IterationsByNothing {
		return
	}
	for i := range t.Iterations {
		it := &t.Iterations[i]
		w.steps.add(Step{Rank: r.number, Step: int64(it.Number), Epoch: int64(it.Epoch), Ended: it.Ended,
			Start: it.StartNS, End: it.EndNS, Peak: int64(it.Peak.Bytes), PeakAt: it.Peak.TimeNS,
			Live: int64(report.SumOf(it.End)), ReservedPeak: int64(it.ReservedPeakBytes),
			ReservedEnd: int64(it.ReservedEndBytes), Allocs: int64(it.AllocCount), Frees: int64(it.FreeCount)})
		for c, name := range t.Categories {
			w.stepShares.add(StepShare{Rank: r.number, Step: int64(it.Number), Ended: it.Ended, Category: text(name),
				AtPeak: at(it.Peak.Held, c), Highest: at(it.Highest, c), Live: at(it.End, c)})
		}
	}
}

// at is a value of a list that may be missing.
func at(list []uint64, i int) int64 {
	if i >= len(list) {
		return 0
	}
	return int64(list[i])
}

func (w *Writer) addTags(r *Rank) {
	for _, level := range []string{report.LevelFramework, report.LevelDriver} {
		group := r.summary.Group("tag", level)
		if group == nil {
			continue
		}
		for i := range group.Rows {
			row := &group.Rows[i]
			w.tags.add(Tag{Rank: r.number, Level: level, Tag: text(row.Key), Peak: int64(row.PeakBytes),
				Live: int64(row.LiveBytes), Sum: int64(row.AllocBytes), Allocs: int64(row.AllocCount),
				Frees: int64(row.FreeCount)})
		}
	}
}
