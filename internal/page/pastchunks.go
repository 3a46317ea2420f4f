package page

import (
	"slices"
	"sort"

	"memtrace/analyzer/report"
)

// Events are grouped in chunks, whose sums are known, as in model.js: a query costs a step for each chunk of its range,
// and one for each event of the chunks at its ends.

const (
	chunkShift  = 9
	chunkEvents = 1 << chunkShift
	chunkMask   = chunkEvents - 1

	shortestPower = 3  // of ten, of nanoseconds
	powers        = 17 // up to what 63 bits hold

	checkpointEvents = 1 << 15
)

// chunk is the totals of chunkEvents events.
type chunk struct {
	before    int64 // bytes that are live before it
	high      int64 // after its highest event
	highEvent int
	lives     [powers]lifeSum // of the blocks that end in it, by how long they lived
}

type lifeSum struct{ count, bytes uint64 }

// checkpoint is the blocks that are live before an event, in their order.
type checkpoint struct {
	event  int
	blocks []int32
}

// layering is the bytes of each layer before each chunk.
type layering struct {
	layerOf []int
	layers  int
	state   []uint64 // by chunk and layer
}

// sumUp computes the chunks, and ends with the total.
func (p *past) sumUp() {
	var live int64
	for first := 0; first < len(p.change); first += chunkEvents {
		c := chunk{before: live, high: -1}
		for e := first; e < min(first+chunkEvents, len(p.change)); e++ {
			b, bytes := p.block(e)
			if live += bytes; live > c.high {
				c.high, c.highEvent = live, e
			}
			if p.change[e] < 0 {
				c.lives[powerOf(p.h.Times[e]-p.h.Times[b.Born])].add(b.Size)
			}
		}
		p.chunks = append(p.chunks, c)
	}
	p.total = live
}

func (s *lifeSum) add(size uint64) {
	s.count++
	s.bytes += size
}

// powerOf is the row of lifetimes in which a block of the given nanoseconds is counted.
func powerOf(ns int64) int {
	power := 0
	for below := int64(1000); ns >= below && power < powers-1; power++ {
		if below > 1<<62/10 {
			return power + 1
		}
		below *= 10
	}
	return power
}

// check lists the blocks that are live before some of the events. The distance between them is the length of the
// previous list, so that all of them together are not longer than the events.
func (p *past) check(apart int) {
	p.checkpoints = []checkpoint{{}}
	for {
		last := &p.checkpoints[len(p.checkpoints)-1]
		event := last.event + max(apart, len(last.blocks))
		if event >= len(p.change) {
			return
		}
		next := checkpoint{event: event}
		p.eachLive(event-1, func(b int32) { next.blocks = append(next.blocks, b) })
		next.blocks = slices.Clip(next.blocks)
		p.checkpoints = append(p.checkpoints, next)
	}
}

// eachLive calls visit for every block that is live after an event, in the order of their beginnings.
func (p *past) eachLive(event int, visit func(block int32)) {
	n := sort.Search(len(p.checkpoints), func(i int) bool { return p.checkpoints[i].event > event })
	if n == 0 {
		return
	}
	from := &p.checkpoints[n-1]
	for _, b := range from.blocks {
		if int(p.h.Blocks[b].Died) > event {
			visit(b)
		}
	}
	for e := from.event; e <= event; e++ {
		if n := p.change[e]; n > 0 && int(p.h.Blocks[n-1].Died) > event {
			visit(n - 1)
		}
	}
	p.visited += len(from.blocks) + event - from.event + 1
}

// totalAt is the bytes live after an event.
func (p *past) totalAt(event int) int64 {
	first := (event + 1) &^ chunkMask
	total := p.before(first)
	for e := first; e <= event; e++ {
		_, bytes := p.block(e)
		total += bytes
	}
	p.visited += event + 1 - first
	return total
}

// before is the bytes live before a chunk's first event.
func (p *past) before(first int) int64 {
	if n := first >> chunkShift; n < len(p.chunks) {
		return p.chunks[n].before
	}
	return p.total
}

// walk is a position in the events: live is the bytes live before next; best and at are the maximum so far, and the
// event before it.
type walk struct {
	next, at   int
	live, best int64
}

// climb continues a walk up to an event.
func (p *past) climb(w *walk, to int) {
	for w.next <= to {
		p.visited++
		if w.next&chunkMask == 0 && w.next+chunkMask <= to {
			if c := &p.chunks[w.next>>chunkShift]; c.high > w.best {
				w.best, w.at = c.high, c.highEvent
			}
			w.next += chunkEvents
			w.live = p.before(w.next)
			continue
		}
		_, bytes := p.block(w.next)
		if w.live += bytes; w.live > w.best {
			w.best, w.at = w.live, w.next
		}
		w.next++
	}
}

// apply updates the bytes of layers to those after an event, from those before it.
func (p *past) apply(now []uint64, layerOf []int, event int) {
	b, bytes := p.block(event)
	now[layerOf[b.Owner]] += uint64(bytes)
}

// layer finds the bytes of each layer before each chunk, unless they are known.
func (p *past) layer(layerOf []int, layers int) {
	if l := &p.layered; l.layers == layers && slices.Equal(l.layerOf, layerOf) {
		return
	}
	now := make([]uint64, layers)
	l := layering{layerOf: slices.Clone(layerOf), layers: layers, state: make([]uint64, 0, layers*len(p.chunks))}
	for e := range p.change {
		if e&chunkMask == 0 {
			l.state = append(l.state, now...)
		}
		p.apply(now, layerOf, e)
	}
	p.layered = l
}

// layersAt is the bytes of layers after each of some events, in ascending order.
func (p *past) layersAt(events []int, layerOf []int, layers int) []uint64 {
	bytes := make([]uint64, 0, len(events)*layers)
	now, done := make([]uint64, layers), 0 // now is before the event done
	for _, event := range events {
		if n := event >> chunkShift; event >= 0 && n > (done-1)>>chunkShift {
			copy(now, p.layered.state[n*layers:])
			done = n << chunkShift
		}
		for ; done <= event; done++ {
			p.apply(now, layerOf, done)
			p.visited++
		}
		bytes = append(bytes, now...)
	}
	return bytes
}

// livesBetween counts the blocks that ended after edge and up to event.
func (p *past) livesBetween(edge, event int) []lives {
	var sums [powers]lifeSum
	for e := max(edge+1, 0); e <= event; p.visited++ {
		if e&chunkMask == 0 && e+chunkMask <= event {
			for power, s := range p.chunks[e>>chunkShift].lives {
				sums[power].count += s.count
				sums[power].bytes += s.bytes
			}
			e += chunkEvents
			continue
		}
		if p.change[e] < 0 {
			b := &p.h.Blocks[-p.change[e]-1]
			sums[powerOf(p.h.Times[e]-p.h.Times[b.Born])].add(b.Size)
		}
		e++
	}
	list := []lives{}
	below := 1e3
	for _, s := range sums {
		if s.count > 0 {
			list = append(list, lives{Below: below, Count: s.count, Bytes: s.bytes})
		}
		below *= 10
	}
	return list
}

// liveBlocks are the blocks that are live after an event.
func (p *past) liveBlocks(event int) []*report.HistoryBlock {
	var list []*report.HistoryBlock
	p.eachLive(event, func(b int32) { list = append(list, &p.h.Blocks[b]) })
	return list
}
