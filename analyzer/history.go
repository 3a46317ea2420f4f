package analyzer

import (
	"cmp"
	"slices"

	"memtrace/analyzer/callstack"
	"memtrace/analyzer/device"
	"memtrace/analyzer/heap"
	"memtrace/analyzer/meter"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/report"
)

// historyGroupings are what the owners of blocks are told by, beside the categories.
var historyGroupings = []string{"module", "inner", "site", "tag", "operator", "library"}

// pastBlock is a block while the trace is read.
type pastBlock struct {
	born, died     uint64 // events of the level, counted
	bornNS, diedNS int64
	size, addr     uint64
	owner          uint32
	device         int16
	before, after  uint64 // bytes of the level behind the events that it began and ended with
}

// weight is how much a block shows in a picture over time.
func (b *pastBlock) weight() float64 { return float64(b.size) * float64(b.died-b.born) }

// history collects the blocks of one account, the heaviest of them once there are more than twice the limit.
type history struct {
	limit   int
	from    int64 // blocks that are older are told to begin here
	events  uint64
	born    []uint64 // by block id: the event, plus one
	level   []uint64 // by block id: bytes of the level behind it
	blocks  []pastBlock
	owners  map[profile.Origin]uint32
	origins []profile.Origin

	leftOut, leftOutBytes uint64
}

// keepHistory follows the blocks of both levels, if there is to be a history of them.
func (c *collector) keepHistory(o *Options) {
	if o.HistoryBlocks > 0 {
		c.historyBy = o.HistoryBy
		c.past[heap.AccountFramework], c.past[heap.AccountDriver] = newHistory(o.HistoryBlocks),
			newHistory(o.HistoryBlocks)
		c.segments = device.NewSegments()
	}
}

func newHistory(limit int) *history {
	return &history{limit: limit, owners: make(map[profile.Origin]uint32)}
}

func (h *history) opened(id uint32, level uint64) {
	h.events++
	*meter.Slot(&h.born, int(id)), *meter.Slot(&h.level, int(id)) = h.events, level
}

// restart forgets the blocks that are gone.
func (h *history) restart(time int64, level uint64) {
	h.from, h.blocks, h.leftOut, h.leftOutBytes = time, h.blocks[:0], 0, 0
	for id := range h.level {
		h.level[id] = level
	}
}

func (h *history) owner(o *profile.Origin) uint32 {
	n, known := h.owners[*o]
	if !known {
		n = uint32(len(h.origins))
		h.owners[*o] = n
		h.origins = append(h.origins, *o)
	}
	return n
}

func (h *history) closed(id uint32, b *heap.Block, o *profile.Origin, time int64, level uint64) {
	h.events++
	h.blocks = append(h.blocks, pastBlock{h.born[id], h.events, max(b.Time, h.from), time, b.Size, b.Addr, h.owner(o),
		b.Device, h.level[id], level})
	h.born[id] = 0
	if len(h.blocks) >= 2*h.limit {
		h.trim()
	}
}

// trim leaves out all but the heaviest.
func (h *history) trim() {
	if len(h.blocks) <= h.limit {
		return
	}
	selectHeaviest(h.blocks, h.limit)
	for i := range h.blocks[h.limit:] {
		h.leftOut++
		h.leftOutBytes += h.blocks[h.limit+i].size
	}
	h.blocks = h.blocks[:h.limit]
}

func heavier(a, b *pastBlock) int {
	return cmp.Or(cmp.Compare(b.weight(), a.weight()), cmp.Compare(a.born, b.born))
}

// selectHeaviest brings the n heaviest blocks to the front, in any order: a sort of which only the part around n is
// done.
func selectHeaviest(blocks []pastBlock, n int) {
	for len(blocks) > 32 {
		middle := partition(blocks)
		switch {
		case n <= middle:
			blocks = blocks[:middle]
		default:
			blocks, n = blocks[middle:], n-middle
		}
	}
	slices.SortFunc(blocks, func(a, b pastBlock) int { return heavier(&a, &b) })
}

// partition puts blocks that are heavier than the median of three in front of the others, and returns where those
// begin: at least one, and not all.
func partition(blocks []pastBlock) int {
	last := len(blocks) - 1
	sample := []pastBlock{blocks[0], blocks[last/2], blocks[last]}
	slices.SortFunc(sample, func(a, b pastBlock) int { return heavier(&a, &b) })
	pivot := sample[1]
	i, j := 0, last
	for {
		for heavier(&blocks[i], &pivot) < 0 {
			i++
		}
		for heavier(&blocks[j], &pivot) > 0 {
			j--
		}
		if i >= j {
			return max(i, 1)
		}
		blocks[i], blocks[j] = blocks[j], blocks[i]
		i++
		j--
	}
}

// pastEvents counts the events of the framework's level, as far as a history is kept.
func (c *collector) pastEvents() uint64 {
	if h := c.past[heap.AccountFramework]; h != nil {
		return h.events
	}
	return 0
}

// historyOf completes the history of an account. It must come last: it names what the report needs no names of.
func (c *collector) historyOf(a heap.Account) *report.History {
	h := c.past[a]
	if h == nil {
		return nil
	}
	all := history{limit: h.limit, blocks: slices.Clone(h.blocks), leftOut: h.leftOut, leftOutBytes: h.leftOutBytes}
	for id, born := range h.born {
		if b := c.heap.Block(uint32(id)); born > 0 && b.Account == a {
			all.blocks = append(all.blocks, pastBlock{born, h.events + 1, max(b.Time, h.from), 0, b.Size, b.Addr,
				h.owner(&c.details[a].Cells.List[c.cellNumber(uint32(id))].Origin), b.Device, h.level[id], 0})
		}
	}
	all.trim()
	v := &report.History{Level: a.String(), LeftOut: all.leftOut, LeftOutBytes: all.leftOutBytes}
	placed := placeBlocks(v, all.blocks, h.events)
	if a == heap.AccountFramework && c.filter == nil {
		v.Segments = c.segments.Of(&c.device.Holdings, placed)
	}
	by := c.historyGroupings()
	for _, g := range by {
		v.By = append(v.By, g.Name)
	}
	c.resolver.Stacks.Start()
	for i := range h.origins {
		v.Owners = append(v.Owners, c.historyOwner(&h.origins[i], by))
	}
	return v
}

// placeBlocks numbers the events that kept blocks begin and end with, in their order. It returns those events' numbers
// among all of the level.
func placeBlocks(v *report.History, blocks []pastBlock, last uint64) (events []uint64) {
	type moment struct {
		event uint64
		block uint32
		ends  bool
	}
	moments := make([]moment, 0, 2*len(blocks))
	for i, b := range blocks {
		moments = append(moments, moment{event: b.born, block: uint32(i)})
		if b.died <= last {
			moments = append(moments, moment{b.died, uint32(i), true})
		}
	}
	slices.SortFunc(moments, func(a, b moment) int { return cmp.Compare(a.event, b.event) })
	v.Times, v.Levels = make([]int64, len(moments)), make([]uint64, len(moments))
	placed := make([]report.HistoryBlock, len(blocks))
	order := make([]uint32, 0, len(blocks)) // by beginning
	events = make([]uint64, len(moments))
	for n, m := range moments {
		events[n] = m.event
		b, p := &blocks[m.block], &placed[m.block]
		if m.ends {
			v.Times[n], v.Levels[n], p.Died = b.diedNS, b.after, uint32(n)
			continue
		}
		v.Times[n], v.Levels[n] = b.bornNS, b.before
		*p = report.HistoryBlock{Born: uint32(n), Died: uint32(len(moments)), Size: b.size, Addr: b.addr,
			Owner: b.owner, Device: b.device}
		order = append(order, m.block)
	}
	v.Blocks = make([]report.HistoryBlock, 0, len(blocks))
	for _, i := range order {
		v.Blocks = append(v.Blocks, placed[i])
	}
	return events
}

// historyGroupings are those of historyGroupings, behind the categories where there are rules.
func (c *collector) historyGroupings() []*profile.Grouping {
	var by []*profile.Grouping
	if c.iterations != nil {
		by = append(by, c.iterations.Categories.Grouping("category"))
	}
	for _, name := range slices.Concat(historyGroupings, c.historyBy) {
		by = append(by, profile.FindGrouping(name))
	}
	return by
}

func (c *collector) historyOwner(o *profile.Origin, by []*profile.Grouping) report.HistoryOwner {
	var owner report.HistoryOwner
	for _, g := range by {
		id := g.ID(&c.resolver, o)
		key := g.Key(&c.resolver, id)
		if g.Label != nil {
			key = cmp.Or(g.Label(&c.resolver, id), key)
		}
		owner.Keys = append(owner.Keys, key)
	}
	stacks := c.resolver.Stacks
	for _, f := range stacks.Of(callstack.Pair{Native: o.Stack, Python: o.PyStack}).Shown {
		owner.Frames = append(owner.Frames, stacks.Classifier.StackFrame(f, false))
	}
	return owner
}
