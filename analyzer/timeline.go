package analyzer

import (
	"cmp"
	"slices"

	"memtrace/analyzer/heap"
	"memtrace/analyzer/meter"
	"memtrace/analyzer/oom"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/report"
	"memtrace/analyzer/timeline"
	"memtrace/cuda"
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

// otherKeys is what stands for the keys beyond timeline.MaxKeys.
const otherKeys = "(other keys)"

// overTime follows the levels over time.
type overTime struct {
	*timeline.Timeline
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
	return &overTime{Timeline: timeline.New(int(heap.AccountCount), 0), by: by, numbers: make(map[uint64]uint32),
		lines: make(map[lineName]int)}
}

// key returns the number of a cell's key.
func (t *overTime) key(r *profile.Resolver, v *profile.Cell) uint32 {
	if v.TimelineKey == 0 {
		id := t.by.ID(r, &v.Origin)
		n, known := t.numbers[id]
		if !known {
			n = uint32(len(t.ids))
			if n >= timeline.MaxKeys-1 {
				n = timeline.MaxKeys - 1
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

// opened takes in a new block of an account with detail.
func (t *overTime) opened(c *collector, id uint32, b *heap.Block, v *profile.Cell, time int64) {
	t.Reach(time)
	s, d, slot := t.Stacks[b.Account], c.details[b.Account], profile.DeviceSlot(b.Device)
	t.change(c, id, b, v, s.Grow)
	highest := s.Opened(time, d.Total.Allocs)
	if c.iterations != nil {
		phase := profile.PhaseName(c.resolver.Phase(v))
		if highest {
			s.SetPhase(phase)
		}
		if c.iterations.Account == b.Account {
			t.Phase(trainingPhase(phase), time)
		}
	}
	t.set(b.Account.String(), slot, d.Devices[slot].Current)
}

// trainingPhase is a phase as lanes of phases have it: "" if the allocation belongs to none.
func trainingPhase(phase string) string {
	if phase == phaseOther {
		return ""
	}
	return phase
}

// closed takes in a block that ends.
func (t *overTime) closed(c *collector, id uint32, b *heap.Block, v *profile.Cell, time int64) {
	t.Reach(time)
	slot := profile.DeviceSlot(b.Device)
	t.change(c, id, b, v, t.Stacks[b.Account].Shrink)
	t.set(b.Account.String(), slot, c.details[b.Account].Devices[slot].Current)
}

// change divides a block among keys.
func (t *overTime) change(c *collector, id uint32, b *heap.Block, v *profile.Cell, by func(key uint32, size uint64)) {
	if t.by != nil {
		by(t.key(&c.resolver, v), b.Size)
		return
	}
	rest, known := uint64(0), false
	if b.Account == heap.AccountFramework {
		rest, known = c.requests.Rest(id)
	}
	if !known {
		by(useUnknown, b.Size)
		return
	}
	by(useRequested, b.Size-rest)
	if rest > 0 {
		by(useRounding, rest)
	}
}

// moved takes in that a live block has another origin.
func (t *overTime) moved(c *collector, b *heap.Block, from, to *profile.Cell, opened uint64, past bool) {
	if t.by != nil {
		t.Stacks[b.Account].Move(t.key(&c.resolver, from), t.key(&c.resolver, to), b.Size, opened, past)
	}
}

// after takes in what an event says beside blocks.
func (t *overTime) after(c *collector, e *trace.Event) {
	if e.Flags&trace.FlagLate == 0 {
		t.Reach(e.Time)
	}
	lane := t.Lane()
	switch e.Kind {
	case trace.EventAlloc, trace.EventFree, trace.EventMap, trace.EventUnmap, trace.EventDestroy:
		if e.Status == oom.StatusOutOfMemory && e.Level == cuda.LevelDriver && e.Mem != cuda.MemoryAddress {
			lane.OOMs++
		}
		t.reserve(c, profile.DeviceSlot(e.Device))
	case trace.EventMark:
		if lane.Marks++; len(lane.MarkNames) < report.TimelineMarks {
			lane.MarkNames = append(lane.MarkNames, c.resolver.Tables.String(e.Name))
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
		if c.filter.HasDevice(e.Device) && e.Size <= heap.MaxBlockBytes {
			t.set(report.LineUsed, profile.DeviceSlot(e.Device), e.Size)
		}
	}
}

// reserve takes in what the framework's allocator holds on a device.
func (t *overTime) reserve(c *collector, slot int) {
	h := &c.device.Holdings
	if slot >= len(h.Devices) || c.filter.Narrowed() || !c.filter.HasDevice(int16(slot-1)) {
		return
	}
	last := meter.Slot(&t.reserved, slot)
	if now := h.Current(slot); now != *last {
		t.held += now - *last
		*last = now
		t.set(report.LineReserved, slot, now)
	}
	t.Stacks[heap.AccountFramework].Reserved(t.held)
}

// value is what reports show. The summary must have its levels and its window.
func (t *overTime) value(c *collector, s *report.Summary) *report.Timeline {
	t.Reach(s.EndNS())
	v := t.Value(s.EndNS())
	v.By = ByUse
	if t.by != nil {
		v.By = t.by.Name
	}
	for _, a := range c.detailed(s) {
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
	v.Name(t.names(c))
	return v
}

// names are the keys by number, several of which may have the same.
func (t *overTime) names(c *collector) []report.TimelineKey {
	var keys []report.TimelineKey
	if t.by == nil {
		for _, key := range useKeys {
			keys = append(keys, report.TimelineKey{Key: key})
		}
		return keys
	}
	index := profile.NewRowIndex(&c.resolver, t.by)
	for _, id := range t.ids {
		key, label := index.Name(id)
		keys = append(keys, report.TimelineKey{Key: key, Label: label})
	}
	for len(keys) == timeline.MaxKeys-1 {
		keys = append(keys, report.TimelineKey{Key: otherKeys})
	}
	return keys
}
