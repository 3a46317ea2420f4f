package analyzer

import (
	"math/rand/v2"

	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// streamGenerator makes random histories in which everything happens that a program, a driver and a recorder can do to
// the replay.
type streamGenerator struct {
	rng    *rand.Rand
	events []trace.Event
	live   [heap.SpaceCount][]trace.Event // allocations not freed yet
	mapped []trace.Event                  // map events not undone yet
	now    int64
	alloc  [2]uint64 // the framework's own counters
	held   [2]uint64

	objects []trace.Event // create events of live objects
}

// stream options that the tests vary.
type streamShape struct {
	events    int
	delayed   func(trace.Event) bool // which events may come late; nil: none
	wild      bool                   // also unmatched frees, reuse of live addresses, wrong counters, lost records
	noHandles bool
	noStacks  bool // the recorder kept none, so that libraries are unknown
}

func randomStream(seed uint64, shape streamShape) []trace.Event {
	g := &streamGenerator{rng: rand.New(rand.NewPCG(seed, 0x6d656d))}
	for len(g.events) < shape.events {
		g.step(shape)
	}
	for i := range g.events {
		if shape.noStacks {
			g.events[i].Stack = 0
		}
	}
	return g.delay(shape.delayed)
}

func (g *streamGenerator) chance(percent int) bool { return g.rng.IntN(100) < percent }

func (g *streamGenerator) add(e trace.Event) trace.Event {
	if g.chance(90) {
		g.now += int64(g.rng.IntN(1 << g.rng.IntN(34)))
	}
	e.Seq, e.Time = uint64(len(g.events)+1), g.now
	e.Thread = trace.ThreadID(1 + g.rng.IntN(5))
	if g.chance(60) {
		e.Thread = 1
	}
	if g.chance(70) {
		e.Tag = trace.StringID(10 + g.rng.IntN(4))
	}
	if e.Stack == 0 && g.chance(80) {
		e.Stack = trace.StackID(1 + g.rng.IntN(5))
	}
	g.events = append(g.events, e)
	return e
}

func (g *streamGenerator) step(shape streamShape) {
	switch n := g.rng.IntN(100); {
	case n < 30:
		g.framework(shape.wild)
	case n < 35:
		g.object(shape.wild)
	case n < 60:
		g.driver(shape.wild)
	case n < 75 && !shape.noHandles:
		g.handle(shape.wild)
	case n < 95:
		g.free(shape.wild)
	default:
		g.other(shape.wild)
	}
}

var driverCalls = []struct {
	mem          cuda.MemoryKind
	api, runtime string
}{
	{cuda.MemoryDevice, "cuMemAlloc_v2", "cudaMalloc"}, {cuda.MemoryDevice, "cuMemAlloc_v2", ""},
	{cuda.MemoryAsync, "cuMemAllocAsync", "cudaMallocAsync"},
	{cuda.MemoryManaged, "cuMemAllocManaged", ""}, {cuda.MemoryHost, "cuMemHostAlloc", "cudaHostAlloc"},
	{cuda.MemoryRegistered, "cuMemHostRegister_v2", ""},
	{cuda.MemoryArray, "cuMemAllocPitch_v2", ""}, {cuda.MemoryForeign, "cuMemAlloc_v2", ""},
	{cuda.MemoryUnknown, "cuMemAlloc_v2", ""},
	{cuda.MemoryGraph, "cuMemAllocAsync", ""}, {cuda.MemoryAddress, "cuMemAlloc_v2", ""},
	{cuda.MemoryModule, "cuMemAlloc_v2", ""},
}

func api(name string) cuda.API {
	a, ok := cuda.ParseAPI(name)
	if name != "" && !ok {
		panic("no API " + name)
	}
	return a
}

// address returns one of few addresses, so that they are reused soon; never one that is live, unless the history is
// wild. Half of them have 4 MiB to themselves, the others lie close together, so that blocks share pages.
func (g *streamGenerator) address(at heap.Space, wild bool) uint64 {
	for {
		addr := uint64(0x7f00_0000_0000) + uint64(g.rng.IntN(32))<<22
		if g.chance(50) {
			addr = crowded + uint64(g.rng.IntN(32))*crowdedRoom
		}
		if at == heap.SpaceGraph { // the driver gives them a range of their own
			addr -= 0x0200_0000_0000
		}
		taken := false
		for _, e := range g.live[at] {
			taken = taken || e.Addr == addr
		}
		if !taken || wild && g.chance(2) {
			return addr
		}
	}
}

const (
	crowded     = 0x7f80_0000_0000
	crowdedRoom = 0x2_3400
)

func (g *streamGenerator) size() uint64 { return uint64(g.rng.IntN(1 << (1 + g.rng.IntN(22)))) }

// fit makes a size fit the room that its address has.
func fit(addr, size uint64) uint64 {
	if addr >= crowded || addr >= crowded-0x0200_0000_0000 && addr < 0x7f00_0000_0000 {
		return size % crowdedRoom
	}
	return size
}

func (g *streamGenerator) driver(wild bool) {
	call := driverCalls[g.rng.IntN(len(driverCalls))]
	e := trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelDriver, Mem: call.mem, API: api(call.api),
		Runtime: api(call.runtime), Size: g.size(),
		Device: int16(g.rng.IntN(2))}
	if call.mem == cuda.MemoryHost || call.mem == cuda.MemoryRegistered || g.chance(3) {
		e.Device = -1
	}
	at := heap.SpaceOf(&e)
	if len(g.live[at]) > 40 {
		return
	}
	e.Addr = g.address(at, wild)
	e.Size = fit(e.Addr, e.Size)
	g.own(&e)
	if again, ok := g.again(call.mem); ok {
		e.Addr, e.Size, e.Device, e.Handle = again.Addr, again.Size, again.Device, again.Handle
	}
	switch {
	case g.chance(5):
		e.Status, e.Addr = 2, 0
	case wild && g.chance(1):
		e.Size = 1 << 60
	case g.chance(5):
		e.Flags |= trace.FlagEstimated
	case g.chance(5):
		e.Flags |= trace.FlagRuntimeOnly
	}
	e = g.add(e)
	if e.Status == 0 && e.Size <= heap.MaxBlockBytes && !(e.Mem == cuda.MemoryModule && g.isLive(at, e.Addr)) {
		g.live[at] = append(g.live[at], e)
	}
}

func (g *streamGenerator) framework(wild bool) {
	if len(g.live[heap.SpaceFramework]) > 40 {
		return
	}
	device := int16(g.rng.IntN(2))
	e := trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice,
		API: api("reportMemoryUsageToProfiler"), Size: g.size(),
		Device: device, Stack: stackAllocator, Addr: g.address(heap.SpaceFramework, wild)}
	if g.chance(20) {
		g.held[device] += uint64(g.rng.IntN(1 << 20))
	}
	if g.chance(3) {
		e.Mem = cuda.MemoryHost
	}
	g.alloc[device] += e.Size
	g.counters(&e, wild)
	g.live[heap.SpaceFramework] = append(g.live[heap.SpaceFramework], g.add(e))
}

func (g *streamGenerator) counters(e *trace.Event, wild bool) {
	if e.Device < 0 || e.Device > 1 || wild && g.chance(5) {
		return
	}
	e.Allocated, e.Reserved = g.alloc[e.Device], g.held[e.Device]
}

func (g *streamGenerator) handle(wild bool) {
	handles := g.live[heap.SpaceHandle]
	switch n := g.rng.IntN(5); {
	case n == 0 || len(handles) == 0:
		if len(handles) > 20 {
			return
		}
		e := trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelDriver, Mem: cuda.MemoryVMM, API: api("cuMemCreate"),
			Size:   2 << 20,
			Device: int16(g.rng.IntN(2)), Addr: g.address(heap.SpaceHandle, wild)}
		switch {
		case g.chance(20):
			e.Mem, e.Size = cuda.MemoryImported, 0
		case g.chance(20):
			e.Mem = cuda.MemoryMulticast
		}
		g.live[heap.SpaceHandle] = append(handles, g.add(e))
	case n == 4:
		g.retain(wild)
	case n == 1 && len(g.mapped) > 0:
		g.unmap(wild)
	default:
		g.mapNext(handles[g.rng.IntN(len(handles))], wild)
	}
}

func (g *streamGenerator) mapNext(h trace.Event, wild bool) {
	addr := uint64(0x7e00_0000_0000) + uint64(g.rng.IntN(32))<<21
	if g.chance(20) {
		addr |= 1 << 63 // no address: a key of a sparse tile or of a multicast binding
	}
	for _, m := range g.mapped {
		if m.Addr == addr && !(wild && g.chance(5)) {
			return
		}
	}
	e := trace.Event{Kind: trace.EventMap, Level: cuda.LevelDriver, API: api("cuMemMap"), Addr: addr, Size: 2 << 20,
		Handle: h.Addr, Device: h.Device}
	if g.chance(5) {
		e.Status = 1
	}
	if wild && g.chance(5) {
		e.Handle = 12345
	}
	if e = g.add(e); e.Status == 0 {
		g.mapped = append(g.mapped, e)
	}
}

// unmap undoes one mapping, or several neighbours at once.
func (g *streamGenerator) unmap(wild bool) {
	first := g.mapped[g.rng.IntN(len(g.mapped))]
	e := trace.Event{Kind: trace.EventUnmap, Level: cuda.LevelDriver, API: api("cuMemUnmap"), Addr: first.Addr,
		Size: first.Size}
	for g.chance(50) && g.isMapped(e.Addr+e.Size) {
		e.Size += 2 << 20
	}
	if wild && g.chance(10) {
		e.Size += uint64(g.rng.IntN(6)) << 21 // beyond a hole
	}
	if g.chance(5) {
		e.Status = 1
		g.add(e)
		return
	}
	e = g.add(e)
	kept := g.mapped[:0]
	for _, m := range g.mapped {
		if m.Addr < e.Addr || m.Addr >= e.Addr+e.Size {
			kept = append(kept, m)
		}
	}
	g.mapped = kept
}

func (g *streamGenerator) isMapped(addr uint64) bool {
	for _, m := range g.mapped {
		if m.Addr == addr {
			return true
		}
	}
	return false
}

func (g *streamGenerator) free(wild bool) {
	at := heap.Space(g.rng.IntN(int(heap.SpacePool))) // the last one, of which streams have no blocks
	if len(g.live[at]) == 0 {
		return
	}
	i := g.rng.IntN(len(g.live[at]))
	if g.chance(30) {
		i = len(g.live[at]) - 1 // soon enough to be temporary
	}
	b := g.live[at][i]
	if b.Mem == cuda.MemoryModule {
		return // ends with its module
	}
	e := trace.Event{Kind: trace.EventFree, Level: b.Level, Mem: b.Mem, API: api("cuMemFree_v2"), Addr: b.Addr,
		Device: -1}
	if at == heap.SpaceGraph && g.chance(50) {
		e.Mem = []cuda.MemoryKind{cuda.MemoryDevice, cuda.MemoryAsync}[g.rng.IntN(2)]
		if g.chance(30) { // the graph is launched and its memory freed once more
			defer func() { g.add(e) }()
		}
	}
	if at == heap.SpaceFramework {
		e.API, e.Device, e.Size = b.API, b.Device, b.Size
		g.alloc[b.Device] -= b.Size
		g.counters(&e, wild)
	} else if g.chance(4) {
		e.Status = 1
		g.add(e)
		return
	}
	if g.chance(2) {
		g.add(trace.Event{Kind: trace.EventFree, Level: cuda.LevelDriver, Mem: cuda.MemoryDevice,
			API: api("cuMemFree_v2"), Runtime: api("cudaFree"), Device: -1})
	}
	if wild && g.chance(3) {
		e.Addr = g.address(at, true)
	}
	g.live[at] = append(g.live[at][:i], g.live[at][i+1:]...)
	g.add(e)
}

func (g *streamGenerator) other(wild bool) {
	switch g.rng.IntN(12) {
	default:
		g.name(wild)
	case 6:
		g.add(trace.Event{Kind: trace.EventLaunch, Level: cuda.LevelDriver, Object: cuda.ObjectExec, Addr: 0xc0})
	case 7:
		g.reserve()
	case 0:
		g.add(trace.Event{Kind: trace.EventMark, Name: trace.StringID(20 + g.rng.IntN(2))})
	case 1:
		g.add(trace.Event{Kind: trace.EventStep, Count: uint64(g.rng.IntN(20))})
	case 2:
		g.add(trace.Event{Kind: trace.EventEpoch, Count: uint64(g.rng.IntN(20))})
	case 3:
		g.add(trace.Event{Kind: trace.EventOOM, Level: cuda.LevelFramework, Device: int16(g.rng.IntN(2)),
			Size: g.size(), API: api("reportOutOfMemoryToProfiler")})
	case 4:
		if wild {
			g.add(trace.Event{Kind: trace.EventLost, Count: uint64(g.rng.IntN(9))})
		}
	case 5: // a label: no account of its own
		g.add(trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelRuntime, Mem: cuda.MemoryDevice,
			API: api("cudaMalloc"), Addr: 0x1000, Size: 77})
	}
}

// name gives a block of a framework or of the driver a name, by an address inside of it as often as by its beginning.
func (g *streamGenerator) name(wild bool) {
	e := trace.Event{Kind: trace.EventName, Addr: 0x7f00_0000_0000 + uint64(g.rng.IntN(1<<27)),
		Handle:   uint64(g.rng.IntN(9)),
		Category: []trace.Category{0, 1, 2, 3, 4, 5, trace.CategoryFree}[g.rng.IntN(7)],
		Name:     trace.StringID(10 + g.rng.IntN(4))}
	at := heap.SpaceFramework
	if g.chance(30) {
		at = heap.SpaceDevice
	}
	if live := g.live[at]; len(live) > 0 && !(wild && g.chance(10)) {
		block := live[g.rng.IntN(len(live))]
		if e.Addr = block.Addr; g.chance(50) && block.Size > 0 {
			e.Addr += uint64(g.rng.Int64N(int64(block.Size)))
		}
	}
	g.add(e)
}

// delay moves some events behind later ones and flags them, as the recorder does with stragglers.
func (g *streamGenerator) delay(may func(trace.Event) bool) []trace.Event {
	if may == nil {
		return g.events
	}
	type placed struct {
		at int
		e  trace.Event
	}
	late := make(map[int][]placed)
	var out []trace.Event
	for i, e := range g.events {
		if may(e) && g.chance(15) {
			at := i + 1 + g.rng.IntN(30)
			e.Flags |= trace.FlagLate
			late[at] = append(late[at], placed{at, e})
		} else {
			out = append(out, e)
		}
		for _, p := range late[i] {
			out = append(out, p.e)
		}
		delete(late, i)
	}
	for i := len(g.events); len(late) > 0; i++ {
		for _, p := range late[i] {
			out = append(out, p.e)
		}
		delete(late, i)
	}
	return out
}
