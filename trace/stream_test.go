package trace

import (
	"math"
	"math/rand/v2"

	"memtrace/cuda"
)

// trainingStream generates n events that look like the training of a transformer: every step repeats the same plan of
// allocations and frees with its stacks, tags, threads and sizes; what varies is the time between events, a few
// data-dependent sizes, and the addresses that a best-fit cache hands out for them. Now and then the framework takes a
// segment from the driver.
func trainingStream(n int, seed uint64) []Event {
	g := &streamGenerator{rng: rand.New(rand.NewPCG(seed, 2)), reserved: 2 << 30, free: make(map[uint64][]uint64),
		top: 0x7f5a_4000_0000}
	g.makePlan()
	for len(g.events) < n {
		g.step()
	}
	return g.events[:n]
}

// planned is one allocation of the plan: it is freed after life further plan entries.
type planned struct {
	size    uint64
	life    int
	stack   StackID
	pystack StackID
	tag     StringID
	thread  ThreadID
}

type streamGenerator struct {
	rng                 *rand.Rand
	plan                []planned
	events              []Event
	now                 int64
	allocated, reserved uint64
	free                map[uint64][]uint64 // addresses by size, last freed first
	top                 uint64
}

func (g *streamGenerator) makePlan() {
	sizes := []uint64{512, 2048, 3072, 393216, 1572864, 2359296, 6291456, 9437184, 25165824, 154389504}
	for i := range 1100 {
		p := planned{size: sizes[g.rng.IntN(len(sizes))], life: int(math.Exp(g.rng.Float64() * 6)), thread: 1,
			tag: StringID(10 + i/40)}
		p.stack = StackID(1000 + g.rng.IntN(1200))
		if i < 500 || i > 900 {
			p.pystack = StackID(2300 + g.rng.IntN(800))
		} else {
			p.thread, p.tag = 7, 0 // the autograd thread has no Python frames and no tag
		}
		g.plan = append(g.plan, p)
	}
}

func (g *streamGenerator) add(ev Event) {
	// Mostly a few microseconds apart, with a heavy tail: a lognormal distribution.
	g.now += int64(math.Exp(8.3 + 0.7*g.rng.NormFloat64()))
	ev.Seq, ev.Time = uint64(len(g.events)+1), g.now
	g.events = append(g.events, ev)
}

func (g *streamGenerator) step() {
	type due struct {
		size, addr uint64
		thread     ThreadID
	}
	frees := make(map[int][]due)
	release := func(d due) {
		g.allocated -= d.size
		g.free[d.size] = append(g.free[d.size], d.addr)
		g.add(Event{Kind: EventFree, Level: cuda.LevelFramework, API: 90, Mem: cuda.MemoryDevice, Addr: d.addr,
			Size: d.size, Thread: d.thread,
			Allocated: g.allocated, Reserved: g.reserved})
	}
	for i, p := range g.plan {
		for _, d := range frees[i] {
			d.thread = p.thread
			release(d)
		}
		delete(frees, i)
		if g.rng.IntN(100) == 0 { // the batch's sequence length differs
			p.size += 512 * uint64(g.rng.IntN(64))
		}
		addr := g.take(p)
		g.allocated += p.size
		g.add(Event{Kind: EventAlloc, Level: cuda.LevelFramework, API: 90, Mem: cuda.MemoryDevice, Addr: addr,
			Size: p.size, Thread: p.thread,
			Stack: p.stack, PyStack: p.pystack, Tag: p.tag, Allocated: g.allocated, Reserved: g.reserved})
		until := i + p.life
		frees[until] = append(frees[until], due{p.size, addr, p.thread})
	}
	for i := range 2 * len(g.plan) {
		for _, d := range frees[i] {
			release(d)
		}
	}
	g.add(Event{Kind: EventStep, Count: g.events[len(g.events)-1].Seq / 2200, Thread: 1})
}

// take reuses a freed block of the size or cuts a new one, from a new driver segment once in a while.
func (g *streamGenerator) take(p planned) uint64 {
	if list := g.free[p.size]; len(list) > 0 {
		g.free[p.size] = list[:len(list)-1]
		return list[len(list)-1]
	}
	if g.rng.IntN(50) == 0 {
		segment := max(p.size, 20<<20)
		g.reserved += segment
		g.add(Event{Kind: EventAlloc, Level: cuda.LevelDriver, API: 3, Runtime: 41, Mem: cuda.MemoryDevice, Addr: g.top,
			Size:   segment,
			Thread: p.thread, Stack: p.stack, Tag: p.tag})
	}
	g.top += (p.size + 511) &^ 511
	return g.top
}
