package analyzer

import (
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// oracleObjects is what the oracle knows besides blocks: every event that made or ended an object is kept for good.
type oracleObjects struct {
	lingering map[uint64]*oracleBlock // the block that last was released while mapped, by handle
	nodes     map[uint64]bool         // addresses that ever were a graph node's
	objects   []trace.Event           // live ones, by their create event
	ends      []oracleEnd
	contexts  []oracleContext
	pools     []trace.Event // latest reserve events
}

type oracleEnd struct {
	key string
	seq uint64
}

type oracleContext struct {
	e    trace.Event
	live bool
}

func newOracleObjects() oracleObjects {
	return oracleObjects{lingering: map[uint64]*oracleBlock{}, nodes: map[uint64]bool{}}
}

func oracleKey(kind cuda.ObjectKind, handle uint64, device int16) string {
	if handle == 0 {
		return fmt.Sprint(kind, " of device ", device)
	}
	return fmt.Sprint(kind, " ", handle)
}

// oracleOwner names what the memory of an allocation ends with, "" if with nothing.
func oracleOwner(e trace.Event) string {
	if e.Level != cuda.LevelDriver || e.Handle == 0 {
		return ""
	}
	kinds := map[cuda.MemoryKind]string{cuda.MemoryDevice: "context", cuda.MemoryManaged: "context",
		cuda.MemoryHost: "context", cuda.MemoryRegistered: "context",
		cuda.MemoryArray: "context", cuda.MemoryForeign: "context", cuda.MemoryGraph: "graph",
		cuda.MemoryModule: "module"}
	if kinds[e.Mem] == "" {
		return ""
	}
	return fmt.Sprint(kinds[e.Mem], " ", e.Handle)
}

func (o *oracle) endedAfter(key string, seq uint64) bool {
	return slices.ContainsFunc(o.ends, func(x oracleEnd) bool { return x.key == key && x.seq > seq })
}

func (o *oracle) ownerEndedAfter(e trace.Event) bool {
	return oracleOwner(e) != "" && o.endedAfter(oracleOwner(e), e.Seq)
}

// again says whether an allocation tells of a live block once more.
func (o *oracle) again(old *oracleBlock, e trace.Event) bool {
	switch {
	case e.Level != cuda.LevelDriver || old.e.Mem != e.Mem:
		return false
	case o.s.LostRecords > 0 && (old.e.Size != e.Size || old.e.Device != e.Device ||
		oracleOwner(old.e) != oracleOwner(e)):
		return false
	case e.Mem == cuda.MemoryModule:
		return true
	case e.Mem == cuda.MemoryForeign && old.e.Size == e.Size:
		if old.e.Seq > e.Seq && o.hasLaterFree(e) {
			o.takeLaterFree(e)
			o.pass(e, heap.AccountForeign)
		} else {
			old.extra++
		}
		return true
	}
	return false
}

// addNode notes the address of a graph's node. Frees that were taken for unmatched before it came, late, were frees of
// it.
func (o *oracle) addNode(e trace.Event) {
	o.nodes[e.Addr] = true
	if e.Flags&trace.FlagLate == 0 {
		return
	}
	o.lateFree = slices.DeleteFunc(o.lateFree, func(f trace.Event) bool {
		device := e
		device.Mem = cuda.MemoryDevice
		return f.Addr == e.Addr && (sameSpace(f, e) || sameSpace(f, device))
	})
}

func (o *oracle) refer(e trace.Event) {
	if e.Status != 0 {
		return
	}
	old := o.find(e)
	released := o.lingering[e.Addr]
	switch {
	case old != nil && old.e.Seq <= e.Seq:
		old.extra++
	case old != nil:
		o.takeLaterFree(e)
		o.s.Health.LateAllocs++
	case released != nil && released.mapped > 0 && released.e.Seq <= e.Seq:
		released.released = false
		delete(o.lingering, e.Addr)
	case e.Flags&trace.FlagLate != 0 && o.hasLaterFree(e):
		o.takeLaterFree(e)
		o.s.Health.LateAllocs++
	default:
		o.s.Health.UnmatchedReferences++
	}
}

func (o *oracle) count(kind cuda.ObjectKind, change func(*report.ObjectCount)) {
	n := o.s.Objects[kind.String()]
	change(&n)
	o.s.Objects[kind.String()] = n
}

func (o *oracle) create(e trace.Event) {
	if e.Status != 0 {
		o.count(e.Object, func(n *report.ObjectCount) { n.FailedCount++ })
		return
	}
	key := oracleKey(e.Object, e.Addr, e.Device)
	explicit := e.Flags&trace.FlagNoticed == 0 && strings.HasPrefix(e.API.String(), "cuCtxCreate")
	i := slices.IndexFunc(o.objects, func(x trace.Event) bool { return oracleKey(x.Object, x.Addr, x.Device) == key })
	if i >= 0 && (e.Flags&(trace.FlagNoticed|trace.FlagReference) != 0 || e.Object == cuda.ObjectContext && !explicit) {
		return
	}
	o.count(e.Object, func(n *report.ObjectCount) { n.CreatedCount++ })
	if e.Flags&trace.FlagLate != 0 && o.endedAfter(key, e.Seq) || i >= 0 && o.objects[i].Seq > e.Seq {
		return
	}
	if i >= 0 {
		o.objects[i] = e
	} else {
		o.objects = append(o.objects, e)
		o.count(e.Object, func(n *report.ObjectCount) { n.LiveCount++ })
	}
	if e.Object != cuda.ObjectContext || e.Addr == 0 {
		return
	}
	o.contexts = slices.DeleteFunc(o.contexts, func(c oracleContext) bool {
		return c.e.Addr == e.Addr || !explicit && !oracleExplicit(c.e) && !c.live && c.e.Device == e.Device
	})
	o.contexts = append(o.contexts, oracleContext{e, true})
}

func oracleExplicit(e trace.Event) bool {
	return e.Flags&trace.FlagNoticed == 0 && strings.HasPrefix(e.API.String(), "cuCtxCreate")
}

// end takes an object off the list of live ones.
func (o *oracle) end(kind cuda.ObjectKind, handle uint64, device int16, seq uint64) {
	key := oracleKey(kind, handle, device)
	o.ends = append(o.ends, oracleEnd{key, seq})
	o.count(kind, func(n *report.ObjectCount) { n.DestroyedCount++ })
	o.objects = slices.DeleteFunc(o.objects, func(x trace.Event) bool {
		gone := oracleKey(x.Object, x.Addr, x.Device) == key && x.Seq <= seq
		if gone {
			o.count(kind, func(n *report.ObjectCount) { n.LiveCount-- })
		}
		return gone
	})
}

// endBlocks ends blocks that nobody freed.
func (o *oracle) endBlocks(e trace.Event, which func(*oracleBlock) bool) {
	for _, b := range slices.Clone(o.live) {
		if !which(b) || b.e.Seq >= e.Seq {
			continue
		}
		o.s.Health.ImplicitFrees++
		if b.visible {
			n := o.s.Implicit[b.account.String()]
			n.Count++
			n.Bytes += b.e.Size
			o.s.Implicit[b.account.String()] = n
		}
		o.awaited = append(o.awaited, b.e)
		o.close(b, e)
	}
}

func (o *oracle) destroy(e trace.Event) {
	if e.Status != 0 || e.Flags&trace.FlagReference != 0 {
		return
	}
	owned := func(kind string, handle uint64) {
		key := fmt.Sprint(kind, " ", handle)
		o.ends = append(o.ends, oracleEnd{key, e.Seq})
		o.endBlocks(e, func(b *oracleBlock) bool { return oracleOwner(b.e) == key })
	}
	switch e.Object {
	case cuda.ObjectContext:
		o.destroyContext(e, owned)
		return
	case cuda.ObjectGraph:
		owned("graph", e.Addr)
	case cuda.ObjectModule, cuda.ObjectLibrary:
		owned("module", e.Addr)
	case cuda.ObjectPool:
		o.pools = slices.DeleteFunc(o.pools, func(x trace.Event) bool {
			return x.Object == e.Object && x.Addr == e.Addr && x.Seq <= e.Seq
		})
	}
	o.end(e.Object, e.Addr, e.Device, e.Seq)
}

func (o *oracle) destroyContext(e trace.Event, owned func(string, uint64)) {
	device := e.Device
	if e.Addr != 0 {
		o.contexts = slices.DeleteFunc(o.contexts, func(c oracleContext) bool {
			if c.e.Addr != e.Addr || c.e.Seq > e.Seq {
				return false
			}
			device = c.e.Device
			return true
		})
		owned("context", e.Addr)
		o.end(cuda.ObjectContext, e.Addr, e.Device, e.Seq)
	} else {
		for i := range o.contexts {
			c := &o.contexts[i]
			if oracleExplicit(c.e) || c.e.Device != e.Device {
				continue
			}
			owned("context", c.e.Addr)
			if c.live && c.e.Seq <= e.Seq {
				c.live = false
				o.end(cuda.ObjectContext, c.e.Addr, e.Device, e.Seq)
			}
		}
		unnamed := func(x trace.Event) bool {
			return x.Object == cuda.ObjectContext && x.Addr == 0 && x.Device == e.Device
		}
		if slices.ContainsFunc(o.objects, unnamed) {
			o.end(cuda.ObjectContext, 0, e.Device, e.Seq)
		}
	}
	if device < 0 || o.s.LostRecords > 0 ||
		slices.ContainsFunc(o.contexts, func(c oracleContext) bool { return c.live && c.e.Device == device }) {
		return
	}
	o.endBlocks(e, func(b *oracleBlock) bool {
		return b.e.Mem == cuda.MemoryModule && oracleOwner(b.e) != "" && b.e.Device == device
	})
	for _, x := range slices.Clone(o.objects) {
		if x.Object == cuda.ObjectModule && x.Device == device && x.Seq < e.Seq {
			o.end(x.Object, x.Addr, x.Device, e.Seq)
			o.endBlocks(e, func(b *oracleBlock) bool {
				return oracleOwner(b.e) == oracleKey(x.Object, x.Addr, x.Device)
			})
		}
	}
}

func (o *oracle) reserve(e trace.Event) {
	key := oracleKey(e.Object, e.Addr, e.Device)
	if e.Flags&trace.FlagLate != 0 && o.endedAfter(key, e.Seq) {
		return
	}
	for i, x := range o.pools {
		if oracleKey(x.Object, x.Addr, x.Device) == key {
			if x.Seq <= e.Seq {
				o.pools[i] = e
			}
			return
		}
	}
	o.pools = append(o.pools, e)
}

// sizes adds up what a device's blocks take, page by page.
func (o *oracle) sizes(index int16) (v report.SizesAt) {
	pages := map[uint64]bool{}
	var async uint64
	for _, b := range o.live {
		if b.account != heap.AccountDriver || b.e.Device != index {
			continue
		}
		units := b.e.Size
		switch b.e.Mem {
		case cuda.MemoryDevice, cuda.MemoryArray, cuda.MemoryModule:
			units = (b.e.Size + 511) / 512 * 512
		case cuda.MemoryAsync:
			async += b.e.Size
		}
		v.RequestedBytes += b.e.Size
		v.RoundedBytes += units
		if b.e.Mem != cuda.MemoryDevice && b.e.Mem != cuda.MemoryModule {
			v.PageBytes += units
			continue
		}
		for page := b.e.Addr >> 21; page<<21 < b.e.Addr+b.e.Size && b.e.Size > 0; page++ {
			pages[page] = true
		}
	}
	v.PageBytes += uint64(len(pages)) << 21
	for _, x := range o.pools {
		if x.Device == index && x.Object == cuda.ObjectPool {
			v.PoolReservedBytes += x.Size
		} else if x.Device == index {
			v.GraphPoolBytes += x.Size
		}
	}
	if v.PoolReservedBytes > async {
		v.PoolIdleBytes = v.PoolReservedBytes - async
	}
	return v
}
