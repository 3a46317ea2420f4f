package analyzer

import (
	"slices"

	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// Handles of the generator's objects are few and the same for every kind, as they are in a driver that reuses its
// memory.
func (g *streamGenerator) objectHandle() uint64 { return 0xc0 + uint64(g.rng.IntN(4)) }

// primaryHandle is the handle of a device's primary context.
func primaryHandle(device int16) uint64 { return 0xd0 + uint64(device) }

// own gives an allocation its owner: a live object of the right kind, now and then one that was never seen, or none.
func (g *streamGenerator) own(e *trace.Event) {
	kind := map[cuda.MemoryKind]cuda.ObjectKind{cuda.MemoryGraph: cuda.ObjectGraph,
		cuda.MemoryModule: cuda.ObjectModule, cuda.MemoryAsync: cuda.ObjectUnknown,
		cuda.MemoryAddress: cuda.ObjectUnknown, cuda.MemoryUnknown: cuda.ObjectUnknown}
	wanted, special := kind[e.Mem]
	if !special {
		wanted = cuda.ObjectContext
	}
	var handles []uint64
	for _, o := range g.objects {
		if o.Object == wanted || o.Object == cuda.ObjectLibrary && wanted == cuda.ObjectModule {
			handles = append(handles, o.Addr)
		}
	}
	switch {
	case wanted == cuda.ObjectUnknown:
	case len(handles) > 0 && g.chance(80):
		e.Handle = handles[g.rng.IntN(len(handles))]
	case g.chance(20):
		e.Handle = 0xee
	}
}

// again picks a live block of memory that can be opened or asked for once more.
func (g *streamGenerator) again(kind cuda.MemoryKind) (trace.Event, bool) {
	if kind != cuda.MemoryForeign && kind != cuda.MemoryModule || !g.chance(40) {
		return trace.Event{}, false
	}
	for _, e := range g.live[heap.SpaceDevice] {
		if e.Mem == kind {
			return e, true
		}
	}
	return trace.Event{}, false
}

func (g *streamGenerator) isLive(at heap.Space, addr uint64) bool {
	return slices.ContainsFunc(g.live[at], func(e trace.Event) bool { return e.Addr == addr })
}

// retain takes one more reference to a handle that is live, or whose memory is kept by a mapping.
func (g *streamGenerator) retain(wild bool) {
	e := trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelDriver, Mem: cuda.MemoryVMM,
		API: api("cuMemRetainAllocationHandle"), Flags: trace.FlagReference}
	switch handles := g.live[heap.SpaceHandle]; {
	case wild && g.chance(10):
		e.Addr = g.address(heap.SpaceHandle, true)
	case g.chance(10):
		e.Status = 1
		e.Addr = 0x1234
	case g.chance(50) && len(g.mapped) > 0:
		e.Addr = g.mapped[g.rng.IntN(len(g.mapped))].Handle
	case len(handles) > 0:
		e.Addr = handles[g.rng.IntN(len(handles))].Addr
	default:
		return
	}
	if e = g.add(e); e.Status == 0 {
		g.live[heap.SpaceHandle] = append(g.live[heap.SpaceHandle], e)
	}
}

// object makes or ends one.
func (g *streamGenerator) object(wild bool) {
	if len(g.objects) > 0 && g.chance(40) {
		g.endObject(g.objects[g.rng.IntN(len(g.objects))], wild)
		return
	}
	device := int16(g.rng.IntN(2))
	e := trace.Event{Kind: trace.EventCreate, Level: cuda.LevelDriver, Device: device, Addr: g.objectHandle(),
		API: api("cuMemCreate"),
		Object: []cuda.ObjectKind{cuda.ObjectContext, cuda.ObjectContext, cuda.ObjectPool, cuda.ObjectModule,
			cuda.ObjectLibrary, cuda.ObjectGraph,
			cuda.ObjectExec}[g.rng.IntN(7)]}
	if e.Object == cuda.ObjectContext {
		e.API = api("cuCtxCreate_v2")
		if g.chance(50) {
			e.Addr, e.Flags = primaryHandle(device), trace.FlagNoticed
		}
	}
	if g.has(e) && !wild && e.Flags&trace.FlagNoticed == 0 {
		return
	}
	if g.chance(5) {
		e.Status = 2
	}
	known := g.has(e)
	if e = g.add(e); e.Status == 0 && !known {
		g.objects = append(g.objects, e)
	}
}

func (g *streamGenerator) has(e trace.Event) bool {
	return slices.ContainsFunc(g.objects, func(o trace.Event) bool { return o.Object == e.Object && o.Addr == e.Addr })
}

// endObject ends one object, and a primary context without naming it.
func (g *streamGenerator) endObject(o trace.Event, wild bool) {
	e := trace.Event{Kind: trace.EventDestroy, Level: cuda.LevelDriver, API: o.API, Object: o.Object, Addr: o.Addr,
		Device: o.Device}
	primary := o.Object == cuda.ObjectContext && o.Flags&trace.FlagNoticed != 0
	if primary {
		e.Addr = 0
	}
	if wild && g.chance(10) {
		e.Addr = g.objectHandle()
	}
	switch {
	case g.chance(5):
		e.Status = 1
	case g.chance(10):
		e.Flags = trace.FlagReference
	}
	if g.add(e); e.Status != 0 || e.Flags != 0 {
		return
	}
	g.objects = slices.DeleteFunc(g.objects, func(x trace.Event) bool {
		return x.Object == o.Object && x.Addr == o.Addr
	})
	g.dropOwned(o.Object, o.Addr)
	if o.Object == cuda.ObjectContext && !slices.ContainsFunc(g.objects, func(x trace.Event) bool {
		return x.Object == cuda.ObjectContext && x.Device == o.Device
	}) {
		g.dropModules(o.Device)
	}
}

// dropOwned forgets the blocks that ended with their owner, so that nobody frees them.
func (g *streamGenerator) dropOwned(kind cuda.ObjectKind, handle uint64) {
	if kind == cuda.ObjectLibrary {
		kind = cuda.ObjectModule
	}
	for at := range g.live {
		g.live[at] = slices.DeleteFunc(g.live[at], func(b trace.Event) bool {
			return heap.OwnerOf(&b) == heap.ObjectKey{Handle: handle, Kind: kind}
		})
	}
}

// dropModules forgets what ended with a device's last context.
func (g *streamGenerator) dropModules(device int16) {
	for _, x := range g.objects {
		if x.Object == cuda.ObjectModule && x.Device == device {
			g.dropOwned(x.Object, x.Addr)
		}
	}
	g.objects = slices.DeleteFunc(g.objects, func(x trace.Event) bool {
		return x.Object == cuda.ObjectModule && x.Device == device
	})
	g.live[heap.SpaceDevice] = slices.DeleteFunc(g.live[heap.SpaceDevice], func(b trace.Event) bool {
		return b.Mem == cuda.MemoryModule && b.Device == device && b.Handle != 0
	})
}

func (g *streamGenerator) reserve() {
	e := trace.Event{Kind: trace.EventReserve, Level: cuda.LevelDriver, Device: int16(g.rng.IntN(2)),
		Size: uint64(g.rng.IntN(64)) << 21, Object: cuda.ObjectPool}
	for _, o := range g.objects {
		if o.Object == cuda.ObjectPool && g.chance(50) {
			e.Addr, e.Device = o.Addr, o.Device
		}
	}
	if g.chance(30) {
		e.Object, e.Addr = cuda.ObjectGraphPool, 0
	}
	g.add(e)
}
