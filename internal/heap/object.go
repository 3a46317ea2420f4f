package heap

import (
	"strings"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/trace"
)

// MaxContexts bounds the contexts that are remembered. The memory of others still ends with them; only a reset of their
// device does not reach it.
const MaxContexts = 1 << 12

// Objects are what owns memory besides blocks: contexts, graphs, modules and the like.
type Objects struct {
	live     map[ObjectKey]liveObject
	contexts map[uint64]context // by handle
	ended    map[ObjectKey]uint64
	counts   map[cuda.ObjectKind]*report.ObjectCount
}

type liveObject struct {
	seq    uint64 // order number of the creation
	device int16
}

// context is what a context's handle stands for. A primary context that was reset stays known: the driver keeps its
// handle.
type context struct {
	seq      uint64
	device   int16
	explicit bool // made by the program; any other one is its device's primary context
	live     bool
}

func newObjects() Objects {
	return Objects{live: make(map[ObjectKey]liveObject), contexts: make(map[uint64]context),
		ended:  make(map[ObjectKey]uint64),
		counts: make(map[cuda.ObjectKind]*report.ObjectCount)}
}

func (o *Objects) count(kind cuda.ObjectKind) *report.ObjectCount {
	if o.counts[kind] == nil {
		o.counts[kind] = &report.ObjectCount{}
	}
	return o.counts[kind]
}

// Counts counts the contexts, pools, modules, graphs and so on, by the name of their kind.
func (o *Objects) Counts() map[string]report.ObjectCount {
	list := make(map[string]report.ObjectCount, len(o.counts))
	for kind, n := range o.counts {
		list[kind.String()] = *n
	}
	return list
}

// endedSince reports whether an object of this key ended after the given order number, as far as that is remembered.
func (o *Objects) endedSince(key ObjectKey, seq uint64) bool { return o.ended[key] > seq }

// EndedSince reports whether the object of an event ended after the event, as far as that is remembered.
func (o *Objects) EndedSince(e *trace.Event) bool {
	return o.endedSince(KeyOf(e.Object, e.Addr, e.Device), e.Seq)
}

// KnowsContexts reports whether the trace tells of contexts.
func (o *Objects) KnowsContexts() bool { return o.counts[cuda.ObjectContext] != nil }

// EachContext calls visit for every live context of a device, with the order number of its creation.
func (o *Objects) EachContext(device int16, visit func(handle, seq uint64)) {
	for handle, v := range o.contexts {
		if v.live && v.device == device {
			visit(handle, v.seq)
		}
	}
}

// noteEnd remembers when an object ended. When there are too many, all are forgotten: only recent ones can still matter
// to late events.
func (o *Objects) noteEnd(key ObjectKey, seq uint64) {
	if len(o.ended) >= maxUnmatched {
		clear(o.ended)
	}
	o.ended[key] = max(o.ended[key], seq)
}

// begin takes in a create event.
func (o *Objects) begin(e *trace.Event) {
	n := o.count(e.Object)
	if e.Status != 0 {
		n.FailedCount++
		return
	}
	key := KeyOf(e.Object, e.Addr, e.Device)
	again := e.Flags&(trace.FlagNoticed|trace.FlagReference) != 0 || e.Object == cuda.ObjectContext && !isExplicit(e)
	old, isLive := o.live[key]
	if isLive && again {
		return
	}
	n.CreatedCount++
	if e.Flags&trace.FlagLate != 0 && o.endedSince(key, e.Seq) || isLive && old.seq > e.Seq {
		return // it had ended before its beginning came to light
	}
	if !isLive {
		n.LiveCount++
	}
	o.live[key] = liveObject{seq: e.Seq, device: e.Device}
	if e.Object == cuda.ObjectContext && e.Addr != 0 {
		o.addContext(e)
	}
}

// isExplicit reports whether the program itself made the context of a create event.
func isExplicit(e *trace.Event) bool {
	return e.Flags&trace.FlagNoticed == 0 && strings.HasPrefix(e.API.String(), "cuCtxCreate")
}

func (o *Objects) addContext(e *trace.Event) {
	c := context{seq: e.Seq, device: e.Device, explicit: isExplicit(e), live: true}
	if !c.explicit { // a device has one primary context, so the handle of the one before is void
		for handle, known := range o.contexts {
			if !known.explicit && !known.live && known.device == c.device {
				delete(o.contexts, handle)
			}
		}
	}
	if len(o.contexts) < MaxContexts {
		o.contexts[e.Addr] = c
	}
}

// finish takes in that an object has ended; events that were late may tell of an earlier object of the same handle.
func (o *Objects) finish(key ObjectKey, seq uint64) {
	o.noteEnd(key, seq)
	n := o.count(key.Kind)
	n.DestroyedCount++
	if v, isLive := o.live[key]; isLive && v.seq <= seq {
		delete(o.live, key)
		n.LiveCount--
	}
}

// primaries lists the contexts that may own memory of a device's primary context.
func (o *Objects) primaries(device int16) (handles []uint64) {
	for handle, c := range o.contexts {
		if !c.explicit && c.device == device {
			handles = append(handles, handle)
		}
	}
	return handles
}

// hasContext reports whether a device still has a live context.
func (o *Objects) hasContext(device int16) bool {
	for _, c := range o.contexts {
		if c.live && c.device == device {
			return true
		}
	}
	return false
}

// modulesOn lists the live modules of a device.
func (o *Objects) modulesOn(device int16, before uint64) (keys []ObjectKey) {
	for key, v := range o.live {
		if key.Kind == cuda.ObjectModule && v.device == device && v.seq < before {
			keys = append(keys, key)
		}
	}
	return keys
}
