package analyzer

import (
	"memtrace/analyzer/callstack"
	"memtrace/analyzer/heap"
	"memtrace/analyzer/meter"
	"memtrace/analyzer/report"
	"memtrace/trace"
)

// holdings knows which library holds how much driver memory on which device, whatever the filters are. From it comes what a framework's allocator has
// reserved: the live driver memory whose calling library is the one that also makes the framework's reports. The framework's own counters, which travel
// with its events, check that figure.
type holdings struct {
	devices []deviceHoldings // by device slot
	library uint32           // makes the framework's reports; unknownLibrary until one is seen with a stack

	reservedMismatches  uint64
	allocatedMismatches uint64

	// What the first comparison that was not one of zeros said: whether a counter counts what is counted here.
	allocated, reserved agreement
}

type agreement int8

const (
	agrees    agreement = 1
	disagrees agreement = -1
)

// compare returns what a comparison says, if none has said anything yet.
func (a agreement) compare(word, figure uint64) agreement {
	switch {
	case a != 0 || word == 0 && figure == 0:
		return a
	case word == figure:
		return agrees
	}
	return disagrees
}

type deviceHoldings struct {
	byLibrary []libraryBytes // driver memory, by library
	blocks    uint64         // live framework bytes
	counted   bool           // the framework sent counters for this device
	last      report.Counter // its counters, last and highest
	reserved  meter.Share    // its reserved counter, for the case that libraries are unknown
	reported  uint64         // order number of the event that brought the last counters
	seen      uint64         // order number of the last framework event
}

type libraryBytes struct {
	meter.Share // at the framework's peak
	peak        uint64
}

func (h *holdings) device(slot int) *deviceHoldings { return meter.Slot(&h.devices, slot) }

func (h *holdings) openDriver(slot int, library uint32, size, epoch uint64) {
	b := meter.Slot(&h.device(slot).byLibrary, int(library))
	b.Grow(size, epoch)
	b.peak = max(b.peak, b.Current)
}

func (h *holdings) closeDriver(slot int, library uint32, size, epoch uint64) {
	h.devices[slot].byLibrary[library].Shrink(size, epoch)
}

// report takes in the counters of a framework event, whose block has already been replayed, and checks them; epoch is that of the framework's total
// before the event, so that a new maximum finds this event's counter. Late events are not checked: the state they describe has passed.
func (h *holdings) report(e *trace.Event, epoch uint64) {
	d := h.device(deviceSlot(e.Device))
	d.seen = e.Seq
	if e.Allocated == 0 && e.Reserved == 0 || e.Flags&trace.FlagLate != 0 {
		return
	}
	if max(e.Allocated, e.Reserved) > heap.MaxBlockBytes { // a damaged trace's
		h.allocatedMismatches++
		return
	}
	d.reported = e.Seq
	d.counted = true
	d.last.AllocatedBytes = e.Allocated
	d.last.AllocatedBytesPeak = max(d.last.AllocatedBytesPeak, e.Allocated)
	d.last.ReservedBytes = e.Reserved
	d.last.ReservedBytesPeak = max(d.last.ReservedBytesPeak, e.Reserved)
	d.reserved.Settle(epoch)
	d.reserved.Current = e.Reserved
	h.allocated = h.allocated.compare(e.Allocated, d.blocks)
	if d.blocks != e.Allocated {
		h.allocatedMismatches++
	}
	if h.library != callstack.UnknownLibrary {
		h.reserved = h.reserved.compare(e.Reserved, d.heldBy(h.library))
		if d.heldBy(h.library) != e.Reserved {
			h.reservedMismatches++
		}
	}
}

// heldBy returns the live driver bytes of a library.
func (d *deviceHoldings) heldBy(library uint32) uint64 {
	if int(library) < len(d.byLibrary) {
		return d.byLibrary[library].Current
	}
	return 0
}

// current and peak return what the framework's allocator holds now and held at most; fromDriver is the better source, see holdings.fromDriver.
func (d *deviceHoldings) current(library uint32, fromDriver bool) uint64 {
	if !fromDriver {
		return d.last.ReservedBytes
	}
	return d.heldBy(library)
}

func (d *deviceHoldings) peak(library uint32, fromDriver bool) uint64 {
	if !fromDriver {
		return d.last.ReservedBytesPeak
	}
	if int(library) < len(d.byLibrary) {
		return d.byLibrary[library].peak
	}
	return 0
}

// fromDriver reports whether reserved bytes can be read off the driver's events: the reporting library is known and took driver memory itself.
// Otherwise the framework's word is all there is.
func (h *holdings) fromDriver() bool {
	if h.library == callstack.UnknownLibrary {
		return false
	}
	for i := range h.devices {
		if d := &h.devices[i]; int(h.library) < len(d.byLibrary) && d.byLibrary[h.library].peak > 0 {
			return true
		}
	}
	return false
}

// Where reserved bytes come from, for Health.ReservedFrom.
const (
	reservedFromDriver  = "driver"
	reservedFromReports = "reports"
)

func (h *holdings) source() string {
	if h.fromDriver() {
		return reservedFromDriver
	}
	for i := range h.devices {
		if h.devices[i].counted {
			return reservedFromReports
		}
	}
	return ""
}
