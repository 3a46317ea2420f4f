package heap

import (
	"memtrace/cuda"
	"memtrace/trace"
)

// destroy ends an object and the memory that dies with it, which are the owner's blocks older than the event. A context
// takes along what was allocated while it was current, a graph its allocation nodes, a module or library its variables,
// a pool of the program's own what it handed out.
//
// The variables of modules know their module and not the context that it was loaded into, so they end with the last
// live context of their device. While one context of several goes, the variables of its modules stay until their own
// unload: counting them for too long is better than dropping live ones.
func (h *Heap) destroy(e *trace.Event) {
	if e.Status != 0 || e.Flags&trace.FlagReference != 0 {
		return
	}
	switch e.Object {
	case cuda.ObjectContext:
		h.destroyContext(e)
		return
	case cuda.ObjectOwnPool:
		h.endOwned(ObjectKey{Handle: e.Addr, Kind: e.Object}, e)
		return // nothing tells of its beginning
	case cuda.ObjectLibrary:
		h.endOwned(ObjectKey{Handle: e.Addr, Kind: cuda.ObjectModule}, e)
	case cuda.ObjectModule, cuda.ObjectGraph:
		h.endOwned(ObjectKey{Handle: e.Addr, Kind: e.Object}, e)
	}
	h.Objects.finish(KeyOf(e.Object, e.Addr, e.Device), e.Seq)
}

// destroyContext ends one context, or with handle 0 the primary context of the event's device.
func (h *Heap) destroyContext(e *trace.Event) {
	device := e.Device
	if e.Addr != 0 {
		if c, known := h.Objects.contexts[e.Addr]; known && c.seq <= e.Seq {
			device = c.device
			delete(h.Objects.contexts, e.Addr)
		}
		h.endOwned(ObjectKey{Handle: e.Addr, Kind: cuda.ObjectContext}, e)
		h.Objects.finish(KeyOf(cuda.ObjectContext, e.Addr, e.Device), e.Seq)
	} else {
		h.resetPrimary(device, e)
	}
	// with records missing, a module of that handle may be another one
	if device >= 0 && !h.lossy && !h.Objects.hasContext(device) {
		h.endModules(device, e)
	}
}

// resetPrimary ends the primary context of a device, under whatever handle it is known. A device without one may be
// reset, too.
func (h *Heap) resetPrimary(device int16, e *trace.Event) {
	for _, handle := range h.Objects.primaries(device) {
		h.endOwned(ObjectKey{Handle: handle, Kind: cuda.ObjectContext}, e)
		if c := h.Objects.contexts[handle]; c.live && c.seq <= e.Seq {
			c.live = false
			h.Objects.contexts[handle] = c
			h.Objects.finish(ObjectKey{Handle: handle, Kind: cuda.ObjectContext}, e.Seq)
		}
	}
	if unnamed := KeyOf(cuda.ObjectContext, 0, device); h.Objects.live[unnamed].seq != 0 {
		h.Objects.finish(unnamed, e.Seq)
	}
}

// endModules ends the modules of a device that has no context any more, and the variables of its libraries, which
// themselves live on.
func (h *Heap) endModules(device int16, e *trace.Event) {
	for _, key := range h.Objects.modulesOn(device, e.Seq) {
		h.endOwned(key, e)
		h.Objects.finish(key, e.Seq)
	}
	for i := range h.owners.list {
		if own := &h.owners.list[i]; own.key.Kind == cuda.ObjectModule {
			h.endBlocks(uint32(i), e, func(b *Block) bool { return b.Device == device })
		}
	}
}

// endOwned ends the blocks of an owner.
func (h *Heap) endOwned(key ObjectKey, e *trace.Event) {
	h.Objects.noteEnd(key, e.Seq)
	if n, known := h.owners.index[key]; known {
		h.endBlocks(n, e, nil)
	}
	h.owners.forget(key)
}

// endBlocks ends those of an owner's blocks that are older than e and that which picks, nil picking all.
func (h *Heap) endBlocks(owner uint32, e *trace.Event, which func(*Block) bool) {
	h.owners.each(owner, func(id uint32) {
		if b := h.blocks.at(id); b.Seq < e.Seq && (which == nil || which(b)) {
			h.endImplicitly(id, e)
		}
	})
}

// endImplicitly closes a block that nobody freed. Its own free may still come, late.
func (h *Heap) endImplicitly(id uint32, e *trace.Event) {
	b := h.blocks.at(id)
	at := spaceOfOwned(b)
	h.live[at].take(b.Addr)
	h.order.expectFree(memoryPlace{b.Addr, at})
	h.references.dropAll(id)
	h.health.ImplicitFrees++
	h.end(id, e)
}
