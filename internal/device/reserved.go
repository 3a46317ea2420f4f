package device

import (
	"slices"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
)

// Holdings knows which library holds how much driver memory on which device, whatever the filters are. From it comes
// what a framework's allocator has reserved: the live driver memory whose calling library is the one that also makes
// the framework's reports. The framework's own counters, which travel with its events, check that figure.
type Holdings struct {
	Devices []deviceHoldings // by device slot
	Library uint32           // makes the framework's reports; callstack.UnknownLibrary until one is seen with a stack

	pools map[uint32]bool // who holds driver memory for pools of the program's own, among the libraries' numbers

	ReservedMismatches  uint64
	AllocatedMismatches uint64
	Unchecked           bool // the counters stand beside figures that may be lower: not all blocks are there

	// What the first comparison that was not one of zeros said: whether a counter counts what is counted here.
	Allocated, Reserved agreement
}

type agreement int8

const (
	Agrees    agreement = 1
	disagrees agreement = -1
)

// compare returns what a comparison says, if none has said anything yet.
func (a agreement) compare(word, figure uint64) agreement {
	switch {
	case a != 0 || word == 0 && figure == 0:
		return a
	case word == figure:
		return Agrees
	}
	return disagrees
}

type deviceHoldings struct {
	ByLibrary []LibraryBytes // driver memory, by library
	Blocks    uint64         // live framework bytes
	Counted   bool           // the framework sent counters for this device
	Last      report.Counter // its counters, last and highest
	Reserved  heap.Share     // its reserved counter, for the case that libraries are unknown
	Reported  uint64         // order number of the event that brought the last counters
	Seen      uint64         // order number of the last framework event
	pooled    uint64         // held by pools of the program's own
	heldPeak  uint64         // the most that pools of the program's own held, and a framework beside them
}

type LibraryBytes struct {
	heap.Share // at the framework's peak
	Peak       uint64
}

func (h *Holdings) Device(slot int) *deviceHoldings { return heap.Slot(&h.Devices, slot) }

// OpenDriver takes in new driver memory. A handle counts towards the peak once one is mapped, see Mapped.
func (h *Holdings) OpenDriver(slot int, library uint32, b *heap.Block, epoch uint64) {
	held := heap.Slot(&h.Device(slot).ByLibrary, int(library))
	held.Grow(b.Size, epoch)
	if h.pools[library] {
		h.Devices[slot].pooled += b.Size
	}
	if b.Mem != cuda.MemoryVMM {
		held.Peak = max(held.Peak, held.Current)
		h.notePeak(slot)
	}
}

// Mapped takes in that a handle was mapped. PyTorch creates all handles that a segment is to grow by before it maps
// the first one, and gives them back where it gets too few: its own counters never have those.
func (h *Holdings) Mapped() {
	for i := range h.Devices {
		for n := range h.Devices[i].ByLibrary {
			held := &h.Devices[i].ByLibrary[n]
			held.Peak = max(held.Peak, held.Current)
		}
		h.notePeak(i)
	}
}

func (h *Holdings) CloseDriver(slot int, library uint32, size, epoch uint64) {
	h.Devices[slot].ByLibrary[library].Shrink(size, epoch)
	if h.pools[library] {
		h.Devices[slot].pooled -= size
	}
}

// Report takes in the counters of a framework event with an order number, whose block has already been replayed, and
// checks them; epoch is that of the framework's total before the event, so that a new maximum finds this event's
// counter.
func (h *Holdings) Report(device int16, seq, allocated, reserved, epoch uint64) {
	d := h.Device(profile.DeviceSlot(device))
	d.Seen = seq
	if allocated == 0 && reserved == 0 {
		return
	}
	if max(allocated, reserved) > heap.MaxBlockBytes { // a damaged trace's
		h.AllocatedMismatches++
		return
	}
	d.Reported, d.Counted = seq, true
	last := &d.Last
	if last.AllocatedBytes = allocated; allocated > last.AllocatedBytesPeak {
		last.AllocatedBytesPeak = allocated
	}
	if last.ReservedBytes != reserved || d.Reserved.Current != reserved {
		last.ReservedBytes, last.ReservedBytesPeak = reserved, max(last.ReservedBytesPeak, reserved)
		d.Reserved.Sync(epoch)
		d.Reserved.Current = reserved
	}
	if h.Unchecked {
		return
	}
	if h.Allocated == 0 {
		h.Allocated = h.Allocated.compare(allocated, d.Blocks)
	}
	if d.Blocks != allocated {
		h.AllocatedMismatches++
	}
	if h.Library != callstack.UnknownLibrary {
		held := d.heldBy(h.Library)
		if h.Reserved == 0 {
			h.Reserved = h.Reserved.compare(reserved, held)
		}
		if held != reserved {
			h.ReservedMismatches++
		}
	}
}

// ReportLate takes in that a framework's event came late. Its counters are not looked at: the state that they describe
// has passed.
func (h *Holdings) ReportLate(device int16, seq uint64) {
	h.Device(profile.DeviceSlot(device)).Seen = seq
}

// heldBy returns the live driver bytes of a library.
func (d *deviceHoldings) heldBy(library uint32) uint64 {
	if int(library) < len(d.ByLibrary) {
		return d.ByLibrary[library].Current
	}
	return 0
}

// FromDriver reports whether reserved bytes can be read off the driver's events: the reporting library is known and
// took driver memory itself, or only pools of the program's own report. Otherwise the framework's word is all there is.
func (h *Holdings) FromDriver() bool {
	if h.Library == callstack.UnknownLibrary {
		return len(h.pools) > 0 && !h.counted()
	}
	for i := range h.Devices {
		if d := &h.Devices[i]; int(h.Library) < len(d.ByLibrary) && d.ByLibrary[h.Library].Peak > 0 {
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

func (h *Holdings) Source() string {
	switch {
	case h.FromDriver():
		return reservedFromDriver
	case h.counted():
		return reservedFromReports
	}
	return ""
}

func (h *Holdings) counted() bool {
	return slices.ContainsFunc(h.Devices, func(d deviceHoldings) bool { return d.Counted })
}

// DriverBytes returns the live driver memory of a device, whatever the filters are.
func (h *Holdings) DriverBytes(device int16) uint64 {
	if slot := profile.DeviceSlot(device); slot < len(h.Devices) {
		return h.Devices[slot].DriverBytes()
	}
	return 0
}

func (d *deviceHoldings) DriverBytes() (sum uint64) {
	for i := range d.ByLibrary {
		sum += d.ByLibrary[i].Current
	}
	return sum
}

// Used lists the devices on which memory was allocated.
func (h *Holdings) Used() (list []int16) {
	for slot := range h.Devices {
		if d := &h.Devices[slot]; len(d.ByLibrary) > 0 || d.Seen > 0 {
			list = append(list, int16(slot-1))
		}
	}
	return list
}
