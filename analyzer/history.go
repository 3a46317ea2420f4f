package analyzer

import (
	"cmp"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/device"
	"memtrace/internal/heap"
	"memtrace/internal/offheap"
	"memtrace/internal/profile"
)

// historyGroupings are what the owners of blocks are told by, beside the categories.
var historyGroupings = []string{"module", "inner", "site", "tag", "operator", "library"}

// pastBlock is a block while the trace is read.
type pastBlock struct {
	born, died     uint64 // events of the level, counted
	bornNS, diedNS int64
	size, addr     uint64
	requested      uint64
	owner          uint32
	device         int16
	before, after  uint64 // bytes of the level behind the events that it began and ended with
}

// weight is how much a block shows in a picture over time.
func (b *pastBlock) weight() float64 { return float64(b.size) * float64(b.died-b.born) }

// history collects the blocks of one account, the heaviest of them once there are more than the limit.
type history struct {
	limit   int
	from    int64                  // blocks that are older are told to begin here
	level   offheap.Column[uint64] // by block id: bytes of the level after it
	rest    offheap.Column[uint64] // by block id: as in trace.Event; without entries until one is not 0
	hasRest bool
	blocks  []pastBlock
	owners  map[profile.Origin]uint32
	origins []profile.Origin

	leftOut, leftOutBytes uint64
}

// historyFigure keeps the blocks of both levels.
type historyFigure struct {
	noFigure
	r    *replayer
	past [heap.AccountCount]*history
	by   []string // what owners have keys of besides
}

func newHistoryFigure(r *replayer, o *Options) *historyFigure {
	h := &historyFigure{r: r, by: o.HistoryBy}
	for _, a := range detailedAccounts {
		h.past[a] = newHistory(o.HistoryBlocks, r.accounts.room)
	}
	r.device.Segments = device.NewSegments(r.heap, r.accounts.details[heap.AccountFramework].Total.Events)
	return h
}

func (h *historyFigure) needs() need { return need{blocks: true, plain: true} }

func (h *historyFigure) opened(x *change) {
	if x.stats != nil {
		past := h.past[x.block.Account]
		*past.level.Slot(x.id) = x.stats.Total.Current
		past.keepRest(x.id, x.event.Rest)
	}
}

func (h *historyFigure) closed(x *change) {
	if x.stats != nil {
		h.past[x.block.Account].closed(x)
	}
}

func (h *historyFigure) restart(at int64) {
	for _, a := range detailedAccounts {
		h.past[a].restart(at, h.r.accounts.details[a].Total.Current)
	}
}

// answerLast names call stacks that nothing else in the report needs names of.
func (h *historyFigure) answerLast(q *query, s *report.Summary) {
	a := mainAccount(s)
	past := h.past[a]
	all := history{limit: past.limit, leftOut: past.leftOut, leftOutBytes: past.leftOutBytes}
	all.blocks = append(make([]pastBlock, 0, min(past.most(), len(past.blocks)+h.r.heap.Len())), past.blocks...)
	d := q.accounts.details[a]
	h.r.heap.Each(func(id uint32, b *heap.Block) {
		if b.Account == a && !b.Hidden {
			live := q.accounts.live.At(id)
			all.add(pastBlock{live.Opened, d.Total.Events() + 1, max(b.Time, past.from), 0, b.Size, b.Addr,
				past.requested(id, b), past.owner(&d.Cells.List[live.Cell].Origin), b.Device, *past.level.At(id), 0})
		}
	})
	all.trim()
	v := &report.History{Level: a.String(), LeftOut: all.leftOut, LeftOutBytes: all.leftOutBytes}
	placed := placeBlocks(v, all.blocks, d.Total.Events())
	if a == heap.AccountFramework && q.accounts.filter == nil {
		v.Segments = h.r.device.Segments.Of(&h.r.device.Holdings, placed)
	}
	by := h.groupings(q)
	for _, g := range by {
		v.By = append(v.By, g.Name)
	}
	q.resolver.Stacks.Start()
	for i := range past.origins {
		v.Owners = append(v.Owners, historyOwner(q.resolver, &past.origins[i], by))
	}
	s.History = v
}

// groupings are those of historyGroupings, after the categories where there are rules.
func (h *historyFigure) groupings(q *query) []*profile.Grouping {
	var by []*profile.Grouping
	if t := q.accounts.iterations; t != nil {
		by = append(by, t.Categories.Grouping("category"))
	}
	for _, name := range slices.Concat(historyGroupings, h.by) {
		by = append(by, profile.FindGrouping(name))
	}
	return by
}

func newHistory(limit int, room *offheap.Room) *history {
	return &history{limit: limit, level: offheap.NewColumn[uint64](room),
		rest: offheap.NewColumn[uint64](room), owners: make(map[profile.Origin]uint32)}
}

// restart forgets the blocks that are gone.
func (h *history) restart(time int64, level uint64) {
	h.from, h.blocks, h.leftOut, h.leftOutBytes = time, h.blocks[:0], 0, 0
	for id := range h.level.Len() {
		*h.level.At(uint32(id)) = level
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

// keepRest takes no room where nothing is known of any block, as at the driver's level.
func (h *history) keepRest(id uint32, rest uint64) {
	if rest > 0 || h.hasRest {
		*h.rest.Slot(id), h.hasRest = rest, true
	}
}

// requested is what the program asked for of a block: all of it where that is not known.
func (h *history) requested(id uint32, b *heap.Block) uint64 {
	if !h.hasRest {
		return b.Size
	}
	if rest := *h.rest.Slot(id); rest > 0 && rest-1 <= b.Size {
		return b.Size - (rest - 1)
	}
	return b.Size
}

// closed takes in the end of a block, after it is uncounted.
func (h *history) closed(x *change) {
	b := x.block
	h.add(pastBlock{x.began, x.stats.Total.Events(), max(b.Time, h.from), x.event.Time, b.Size, b.Addr,
		h.requested(x.id, b), h.owner(&x.cell.Origin), b.Device, *h.level.At(x.id), x.stats.Total.Current})
}

// add takes in a block, and selects the heaviest when there is a quarter more than the limit.
func (h *history) add(b pastBlock) {
	if len(h.blocks) >= h.most() {
		h.trim()
	}
	h.blocks = append(h.blocks, b)
}

func (h *history) most() int { return h.limit + h.limit/4 + 1 }

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

// placeBlocks sorts the blocks by their beginnings, and numbers the events that they begin and end with in their order.
// Their times ascend from 0 on: an event that another thread's overtook counts as of the same time.
// It returns those events' numbers among all of the level.
func placeBlocks(v *report.History, blocks []pastBlock, last uint64) (events []uint64) {
	type moment struct {
		event uint64
		block uint32
		ends  bool
	}
	slices.SortFunc(blocks, func(a, b pastBlock) int { return cmp.Compare(a.born, b.born) })
	moments := make([]moment, 0, 2*len(blocks))
	for i, b := range blocks {
		moments = append(moments, moment{event: b.born, block: uint32(i)})
		if b.died <= last {
			moments = append(moments, moment{b.died, uint32(i), true})
		}
	}
	slices.SortFunc(moments, func(a, b moment) int { return cmp.Compare(a.event, b.event) })
	v.Times, v.Levels = make([]int64, len(moments)), make([]uint64, len(moments))
	v.Blocks = make([]report.HistoryBlock, len(blocks))
	events = make([]uint64, len(moments))
	var latest int64
	for n, m := range moments {
		events[n] = m.event
		b, p := &blocks[m.block], &v.Blocks[m.block]
		time := b.bornNS
		if m.ends {
			time = b.diedNS
		}
		latest = max(latest, time)
		v.Times[n] = latest
		if m.ends {
			v.Levels[n], p.Died = b.after, uint32(n)
			continue
		}
		v.Levels[n] = b.before
		*p = report.HistoryBlock{Born: uint32(n), Died: uint32(len(moments)), Size: b.size, Addr: b.addr,
			Requested: b.requested, Owner: b.owner, Device: b.device}
	}
	return events
}

func historyOwner(r *profile.Resolver, o *profile.Origin, by []*profile.Grouping) report.HistoryOwner {
	var owner report.HistoryOwner
	for _, g := range by {
		id := g.ID(r, o)
		key := g.Key(r, id)
		if g.Label != nil {
			key = cmp.Or(g.Label(r, id), key)
		}
		owner.Keys = append(owner.Keys, key)
	}
	stacks := r.Stacks
	for _, f := range stacks.Of(callstack.Pair{Native: o.Stack, Python: o.PyStack}).Shown {
		owner.Frames = append(owner.Frames, stacks.Classifier.StackFrame(f, false))
	}
	return owner
}
