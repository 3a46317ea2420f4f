package training

import (
	"fmt"
	"math"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
	"memtrace/internal/offheap"
	"memtrace/internal/profile"
	"memtrace/internal/rules"
	"memtrace/trace"
)

// Moments of an iteration whose modules are known.
const (
	atPeak = iota
	atForward
	atBackward
	atOptimizer
	momentCount
)

var momentNames = [momentCount]string{"peak", "forward", "backward", "optimizer"}

// Tracker divides a run into iterations. What a block is for is often known only after it is gone: a gradient has its
// name when the optimizer has stepped. So the changes of an iteration are kept until it ends, and counted then.
type Tracker struct {
	by      string
	words   string
	Account heap.Account
	ending  map[uint64]bool // objects of the optimizers whose steps count
	// optimizers that step
	optimizers uint64
	backward   []bool // by module: a backward pass allocated for it
	ranges     rangeWatch
	anchor     callstack.Pair

	Requested func() *report.Requested // what the account's live blocks were requested with; nil where nobody tells

	resolver   *profile.Resolver
	cellOf     func(block uint32) *profile.Cell // of a live block
	Categories *profile.Categorizer
	classes    classList
	modules    classList

	slots   []slot                    // blocks that came or went since the last count
	live    offheap.Column[liveBlock] // by block id
	changes []change
	before  tally // what was live at the last count, by what it is for now
	// live blocks that the iteration that runs made before the last count, but for the first one
	young  map[uint32]bool
	Turn   int // changes that are counted at once: maxChanges
	failed []failure

	epoch    uint64
	number   uint64
	started  bool
	reserved []uint64 // by device slot
	passes
	graphs
	links    *callstack.LinkedStacks
	teardown uint64 // order number of the last allocation: what is freed behind it, no pass frees
	spans    spans
	open     openIteration
	done     []report.Iteration
	leftOut  uint64
	record   uint64 // highest peak of the iterations that are done
	highest  int
	held     [momentCount]map[moduleClass]uint64 // of the highest one
	code     newCode
}

// liveBlock is what is kept of a block until it ends.
type liveBlock struct {
	slot uint32 // of one that came since the last count, plus one; else 0
	pass uint32 // that made it, as a number
}

// slot is a block as an iteration sees it.
type slot struct {
	size   uint64
	block  uint32 // its id while it is live
	opened int32  // position among the changes; -1: before them
	closed int32  // stillLive: it is live
	module uint32 // as of the count, or of the block's end
	class  uint16 // the same
	phase  uint8
	young  bool // the iteration made it before the last count
}

// workspace is the category of the scratch memory of libraries.
const workspace = "Workspace"

const stillLive = math.MaxInt32

type change struct {
	time int64
	slot uint32
}

// failure is a moment at which the framework's allocator gave up.
type failure struct {
	at   int // how many changes came before
	held report.OOMCategories
	done bool
}

// maxChanges bounds what waits to be counted. An iteration that has more is counted in several turns, by what is known
// then.
const maxChanges = 1 << 19

type moduleClass struct {
	module uint32
	class  uint16
}

// classList numbers texts from 0.
type classList struct {
	names []string
	index map[string]uint32
}

func (l *classList) number(name string) uint32 {
	n, known := l.index[name]
	if !known {
		if l.index == nil {
			l.index = make(map[string]uint32)
		}
		n = uint32(len(l.names))
		l.index[name] = n
		l.names = append(l.names, name)
	}
	return n
}

var (
	phaseWords     = rules.Words(rules.Phase)
	phaseForward   = profile.PhaseNumber("forward")
	phaseRecompute = profile.PhaseNumber("recompute")
	phaseBackward  = profile.PhaseNumber("backward")
	phaseOptimizer = profile.PhaseNumber("optimizer")
	phaseOther     = profile.PhaseNumber("other")
)

func NewTracker(p *Lookahead, g profile.RuleGrouping, bounds []uint64, r *profile.Resolver,
	cellOf func(block uint32) *profile.Cell, links *callstack.LinkedStacks, room *offheap.Room) *Tracker {
	t := &Tracker{resolver: r, cellOf: cellOf, links: links, by: p.iterationsBy(), Account: heap.AccountDriver,
		Categories: profile.NewCategorizer(g.Rules, bounds), ranges: rangeWatch{tables: r.Tables}, highest: -1,
		passes: passes{tables: r.Tables, pass: phaseOther}, spans: newSpans(), Turn: maxChanges,
		optimizers: uint64(len(p.stepped.all)), live: offheap.NewColumn[liveBlock](room)}
	if p.Framework {
		t.Account = heap.AccountFramework
	}
	t.teardown = p.LastAlloc[t.Account]
	for i := range g.Rules.Rules {
		t.classes.number(g.Rules.Rules[i].Category)
	}
	switch t.by {
	case report.IterationsByStep:
		t.words = "memtrace.step()"
	case report.IterationsByOptimizer:
		t.ending, t.words = p.stepped.ending(r.Tables)
	case report.IterationsByRange:
		t.words = "ranges with the name of an iteration"
	case report.IterationsByPeriod:
		anchor := p.period.anchor()
		t.anchor, t.words = anchor.stacks, fmt.Sprintf("an allocation that returns every %d allocations", anchor.gap)
	}
	return t
}

// Opened takes in a new block of the tracker's account; epoch is that of the account's total before it.
func (t *Tracker) Opened(id uint32, b *heap.Block, v *profile.Cell, epoch uint64) {
	if len(t.changes) >= t.Turn {
		t.count(true)
	}
	phase := t.resolver.Phase(v)
	t.spans.opened(phase, b.Time)
	of := t.links.Latest()
	t.passes.opened(phase, b, of)
	t.graphs.opened(&passBlock{Block: b, id: id, run: t.run, after: t.after, phase: phase, of: of,
		scratch: phase == phaseForward && t.CategoryOf(v) == workspace}, epoch)
	t.slots = append(t.slots, slot{size: b.Size, block: id, opened: int32(len(t.changes)), closed: stillLive,
		phase: phase})
	n := uint32(len(t.slots))
	*t.live.Slot(id) = liveBlock{slot: n, pass: t.run}
	t.changes = append(t.changes, change{b.Time, n - 1})
	t.open.AllocCount++
	t.code.opened(b.PyStack)
}

// Moved takes in that a live block has another cell.
func (t *Tracker) Moved(id uint32, size uint64, from, to *profile.Cell) {
	if t.live.Slot(id).slot != 0 {
		return // its count is yet to come
	}
	s := slot{size: size, phase: t.resolver.Phase(from)}
	stays := !t.young[id]
	t.classify(&s, from)
	t.before.remove(&s)
	if stays {
		t.open.gone(&s)
	}
	t.classify(&s, to)
	t.before.add(&s)
	if stays {
		t.open.came(&s)
	}
}

// Temporary reports whether a block that an event ends is freed by the pass that made it.
func (t *Tracker) Temporary(id uint32, phase uint8, seq uint64) bool {
	pass := passOf(phase)
	return pass != phaseOther && t.live.At(id).pass == t.run && (pass != phaseForward || seq < t.teardown)
}

// Ended is the end of a block.
type Ended struct {
	ID   uint32
	Size uint64
	Seq  uint64 // of the event
	Time int64
}

// Closed takes in the end of a block; epoch is that of the account's total.
func (t *Tracker) Closed(e Ended, v *profile.Cell, epoch uint64) {
	if len(t.changes) >= t.Turn {
		t.count(true)
	}
	block := t.live.At(e.ID)
	if e.Seq < t.teardown {
		t.graphs.closed(block.pass, e.ID, e.Size, epoch)
	}
	n := &block.slot
	if *n == 0 {
		t.slots = append(t.slots, slot{size: e.Size, block: e.ID, opened: -1, phase: t.resolver.Phase(v),
			young: t.young[e.ID]})
		delete(t.young, e.ID)
		*n = uint32(len(t.slots))
	}
	s := &t.slots[*n-1]
	t.classify(s, v)
	s.closed = int32(len(t.changes))
	t.changes = append(t.changes, change{e.Time, *n - 1})
	*n = 0
	t.open.FreeCount++
}

// classify notes what a block is for by what is known now.
func (t *Tracker) classify(s *slot, v *profile.Cell) {
	s.class, s.module = t.classOf(v), t.moduleOf(v)
	if s.phase == phaseBackward {
		*heap.Slot(&t.backward, int(s.module)) = true
	}
}

func (t *Tracker) classOf(v *profile.Cell) uint16 {
	if v.Class == 0 {
		k := t.Categories
		v.Class = 1 + uint16(min(t.classes.number(profile.CategoryKey(k.Of(t.resolver, k.ID(&v.Origin)))),
			math.MaxUint16-1))
	}
	return v.Class - 1
}

// CategoryOf names the category of a cell's blocks by what is known now.
func (t *Tracker) CategoryOf(v *profile.Cell) string { return t.classes.names[t.classOf(v)] }

func (t *Tracker) moduleOf(v *profile.Cell) uint32 {
	if v.ModuleNumber == 0 {
		v.ModuleNumber = 1 + t.modules.number(t.resolver.ModuleOf(&v.Origin))
	}
	return v.ModuleNumber - 1
}

// Event looks for the ends and beginnings of iterations. Those that begin with an allocation must be asked before it is
// replayed.
func (t *Tracker) Event(e *trace.Event) {
	switch e.Kind {
	case trace.EventStep:
		if t.by == report.IterationsByStep {
			t.begin(e)
			t.number = e.Count
		}
	case trace.EventEpoch:
		t.epoch = e.Count
	case trace.EventOOM: // what is freed now was not temporary: the pass that needed it was given up
		t.run++
		t.graphs.forget() // their backward passes were to come
		if t.Account == heap.AccountFramework && len(t.failed) < report.MaxOOMCategories {
			t.failed = append(t.failed, failure{at: len(t.changes), held: report.OOMCategories{TimeNS: e.Time}})
		}
	case trace.EventAlloc:
		if t.by == report.IterationsByRange && e.Status == 0 && t.ranges.begins(e) ||
			t.by == report.IterationsByPeriod && (callstack.Pair{Native: e.Stack, Python: e.PyStack}) == t.anchor &&
				heap.AccountOf(e) == t.Account {
			t.begin(e)
		}
	}
}

// FromAllocations reports whether iterations begin with certain allocations, which Event must see.
func (t *Tracker) FromAllocations() bool {
	return t.by == report.IterationsByRange || t.by == report.IterationsByPeriod
}

// begin ends the iteration before, if there was one.
func (t *Tracker) begin(e *trace.Event) {
	if t.started {
		t.end(e.Time)
	}
	t.started = true
}

// Stepped takes in a step of an optimizer.
func (t *Tracker) Stepped(e *trace.Event) {
	if t.by == report.IterationsByOptimizer && t.ending[e.Handle] {
		t.end(e.Time)
	}
}

// Reserved takes in what the framework's allocator holds on a device.
func (t *Tracker) Reserved(device int16, held uint64) {
	reserved := heap.Slot(&t.reserved, profile.DeviceSlot(device))
	if *reserved == held || held > heap.MaxBlockBytes {
		return
	}
	*reserved = held
	var sum uint64
	for _, bytes := range t.reserved {
		sum += bytes
	}
	t.open.ReservedPeakBytes = max(t.open.ReservedPeakBytes, sum)
	t.open.ReservedEndBytes = sum
}
