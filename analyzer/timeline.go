package analyzer

import (
	"cmp"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/internal/moment"
	"memtrace/internal/oom"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// ByUse is a division that Options.Timeline knows beside the groupings: what the program requested, and what rounding
// added to that. What the allocator holds idle stands beside it.
const ByUse = "use"

// Keys of ByUse, by number.
var useKeys = []string{"requested", "rounding", "(unknown)"}

const (
	useRequested = iota
	useRounding
	useUnknown
)

// phaseOther is the phase of allocations that belong to no part of a training program.
const phaseOther = "other"

// otherKeys is what stands for the keys beyond moment.MaxKeys.
const otherKeys = "(other keys)"

// overTime follows the levels over time.
type overTime struct {
	noFigure
	r *replayer // set once there is one
	*moment.Timeline
	by       *profile.Grouping // nil: ByUse
	numbers  map[uint64]uint32 // by identifier of the grouping
	ids      []uint64          // by number
	lines    map[lineName]int
	reserved []uint64 // by device slot
	held     uint64   // sum of them
}

type lineName struct {
	name string
	slot int
}

// overTime returns nil where no timeline was asked for.
func (o *Options) overTime(byRules []*profile.Grouping) (*overTime, error) {
	switch o.Timeline {
	case "":
		return nil, nil
	case ByUse:
		return newOverTime(nil), nil
	}
	by, err := profile.PickGroupings([]string{o.Timeline}, byRules)
	if err != nil {
		return nil, err
	}
	return newOverTime(by[0]), nil
}

func newOverTime(by *profile.Grouping) *overTime {
	return &overTime{Timeline: moment.NewTimeline(int(heap.AccountCount), 0), by: by, numbers: make(map[uint64]uint32),
		lines: make(map[lineName]int)}
}

// key returns the number of a cell's key.
func (t *overTime) key(r *profile.Resolver, v *profile.Cell) uint32 {
	if v.TimelineKey == 0 {
		id := t.by.ID(r, &v.Origin)
		n, known := t.numbers[id]
		if !known {
			n = uint32(len(t.ids))
			if n >= moment.MaxTimelineKeys-1 {
				n = moment.MaxTimelineKeys - 1
			} else {
				t.numbers[id] = n
				t.ids = append(t.ids, id)
			}
		}
		v.TimelineKey = n + 1
	}
	return v.TimelineKey - 1
}

// set gives a line of a device its value.
func (t *overTime) set(name string, slot int, value uint64) {
	n, known := t.lines[lineName{name, slot}]
	if !known {
		n = t.AddLine()
		t.lines[lineName{name, slot}] = n
	}
	t.Set(n, value)
}

func (t *overTime) needs() need { return need{allKinds, true, true} }

func (t *overTime) opened(x *change) {
	if x.stats == nil {
		return
	}
	account, slot, time := x.block.Account, profile.DeviceSlot(x.block.Device), x.event.Time
	t.Reach(time)
	s := t.Stacks[account]
	t.change(x, s.Grow)
	highest := s.Opened(time, x.stats.Total.Events())
	if iterations := t.r.accounts.iterations; iterations != nil {
		phase := profile.PhaseName(t.r.accounts.resolver.Phase(x.cell))
		if highest {
			s.SetPhase(phase)
		}
		if iterations.Account == account {
			t.Phase(trainingPhase(phase), time)
		}
	}
	t.set(account.String(), slot, x.stats.Devices[slot].Current)
}

// trainingPhase is a phase as lanes of phases have it: "" if the allocation belongs to none.
func trainingPhase(phase string) string {
	if phase == phaseOther {
		return ""
	}
	return phase
}

func (t *overTime) closed(x *change) {
	if x.stats == nil {
		return
	}
	account, slot := x.block.Account, profile.DeviceSlot(x.block.Device)
	t.Reach(x.event.Time)
	t.change(x, t.Stacks[account].Shrink)
	t.set(account.String(), slot, x.stats.Devices[slot].Current)
}

// change divides a block among keys.
func (t *overTime) change(x *change, by func(key uint32, size uint64)) {
	if t.by != nil {
		by(t.key(&t.r.accounts.resolver, x.cell), x.block.Size)
		return
	}
	rest, known := uint64(0), false
	if x.block.Account == heap.AccountFramework {
		rest, known = t.r.accounts.live.At(x.id).Beyond()
	}
	if !known {
		by(useUnknown, x.block.Size)
		return
	}
	by(useRequested, x.block.Size-rest)
	if rest > 0 {
		by(useRounding, rest)
	}
}

func (t *overTime) moved(x *relabel) {
	if r := &t.r.accounts.resolver; t.by != nil {
		t.Stacks[x.block.Account].Move(t.key(r, x.from), t.key(r, x.to), x.block.Size, x.began, x.past)
	}
}

func (t *overTime) restart(at int64) { t.Restart(at) }

// event takes in what an event reports beside blocks.
func (t *overTime) event(e *trace.Event) {
	if e.Flags&trace.FlagLate == 0 {
		t.Reach(e.Time)
	}
	lane := t.Lane()
	switch e.Kind {
	case trace.EventAlloc, trace.EventFree, trace.EventMap, trace.EventUnmap, trace.EventDestroy:
		if e.Status == oom.StatusOutOfMemory && e.Level == cuda.LevelDriver && e.Mem != cuda.MemoryAddress {
			lane.OOMs++
		}
		t.reserve(profile.DeviceSlot(e.Device))
	case trace.EventMark:
		if lane.Marks++; len(lane.MarkNames) < report.TimelineMarks {
			lane.MarkNames = append(lane.MarkNames, t.r.accounts.resolver.Tables.String(e.Name))
		}
	case trace.EventStep:
		if lane.Steps++; lane.Steps == 1 {
			lane.FirstStep = e.Count
		}
		lane.LastStep = e.Count
	case trace.EventEpoch:
		lane.Epochs++
		lane.LastEpoch = e.Count
	case trace.EventOOM:
		lane.OOMs++
	case trace.EventSample:
		if t.r.accounts.filter.HasDevice(e.Device) && e.Size <= heap.MaxBlockBytes {
			t.set(report.LineUsed, profile.DeviceSlot(e.Device), e.Size)
		}
	}
}

// reserve takes in what the framework's allocator holds on a device.
func (t *overTime) reserve(slot int) {
	h, filter := &t.r.device.Holdings, t.r.accounts.filter
	if slot >= len(h.Devices) || filter.Narrowed() || !filter.HasDevice(int16(slot-1)) {
		return
	}
	last := heap.Slot(&t.reserved, slot)
	if now := h.Current(slot); now != *last {
		t.held += now - *last
		*last = now
		t.set(report.LineReserved, slot, now)
	}
	t.Stacks[heap.AccountFramework].Reserved(t.held)
}

// answerLast shows the phases of training, too.
func (t *overTime) answerLast(q *query, s *report.Summary) {
	t.Reach(s.EndNS())
	v := t.Value(s.EndNS())
	v.By = ByUse
	if t.by != nil {
		v.By = t.by.Name
	}
	for _, a := range q.detailed(s) {
		v.Levels = append(v.Levels, report.TimelineLevel{Level: a.String(), Bins: t.Stacks[a].Bins()})
	}
	for name, n := range t.lines {
		v.Lines = append(v.Lines, report.TimelineLine{Name: name.name, Device: int16(name.slot - 1),
			PeakBytes: t.Highs(n)})
	}
	slices.SortFunc(v.Lines, func(a, b report.TimelineLine) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Device, b.Device))
	})
	if s.Training != nil {
		v.Phases = s.Training.Phases
	}
	v.Name(t.names(q.resolver))
	s.Timeline = v
}

// names are the keys by number, several of which may have the same.
func (t *overTime) names(r *profile.Resolver) []report.TimelineKey {
	var keys []report.TimelineKey
	if t.by == nil {
		for _, key := range useKeys {
			keys = append(keys, report.TimelineKey{Key: key})
		}
		return keys
	}
	index := profile.NewRowIndex(r, t.by)
	for _, id := range t.ids {
		key, label := index.Name(id)
		keys = append(keys, report.TimelineKey{Key: key, Label: label})
	}
	for len(keys) == moment.MaxTimelineKeys-1 {
		keys = append(keys, report.TimelineKey{Key: otherKeys})
	}
	return keys
}
