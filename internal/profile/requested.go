package profile

import (
	"math"

	"memtrace/analyzer/report"
	"memtrace/internal/heap"
)

// requestShares are the parts of one meter's total that Requested is made of.
type requestShares struct{ rest, unknown heap.Share }

func (r *requestShares) grow(size uint64, rest uint32, epoch uint64) {
	switch rest {
	case 0:
		r.unknown.Grow(size, epoch)
	case 1: // nothing beyond the request, as with most blocks
	default:
		r.rest.Grow(uint64(rest-1), epoch)
	}
}

func (r *requestShares) shrink(size uint64, rest uint32, epoch uint64) {
	switch rest {
	case 0:
		r.unknown.Shrink(size, epoch)
	case 1:
	default:
		r.rest.Shrink(uint64(rest-1), epoch)
	}
}

// begin makes everything unknown that a meter counted so far.
func (r *requestShares) begin(m *heap.Meter) {
	r.unknown = heap.Share{Current: m.Current, AtPeak: m.Peak, Epoch: m.Epoch}
}

func (r *requestShares) live(m *heap.Meter) *report.Requested {
	return requestedOf(m.Current, r.rest.Current, r.unknown.Current)
}

func (r *requestShares) atPeak(m *heap.Meter) *report.Requested {
	return requestedOf(m.Peak, r.rest.Peak(m.Epoch), r.unknown.Peak(m.Epoch))
}

func requestedOf(bytes, rest, unknown uint64) *report.Requested {
	return &report.Requested{Bytes: bytes - rest - unknown, RestBytes: rest, UnknownBytes: unknown}
}

// Requests follow what the live blocks of a framework were requested with, from the first one on of which that is
// known.
type Requests struct {
	known   bool // of any block
	total   requestShares
	devices []requestShares // by device slot
}

// LiveBlock is what is kept of a live block that is counted by origin.
type LiveBlock struct {
	Opened uint64 // number of its beginning among its account's events
	Cell   uint32 // number of its cell
	Rest   uint32 // 1 + the bytes beyond the request, 0 unknown
}

// Beyond is what the block has beyond its request; known is false where the framework did not say.
func (b *LiveBlock) Beyond() (bytes uint64, known bool) {
	return uint64(max(b.Rest, 1) - 1), b.Rest > 0
}

// Opened comes before the detail counts the block, closed as well: see meter.grow.
// word is the event's on the bytes beyond the request, 1 + their number, 0 unknown; what is returned is to be kept.
func (r *Requests) Opened(b *heap.Block, word uint64, d *AccountStats, v *Cell) (rest uint32) {
	if word > 0 && word <= math.MaxUint32 && word <= b.Size {
		rest = uint32(word)
		if !r.known {
			r.begin(d)
		}
	}
	if !r.known {
		return 0
	}
	slot := DeviceSlot(b.Device)
	device := heap.Slot(&r.devices, slot)
	if rest == 1 {
		return rest
	}
	r.total.grow(b.Size, rest, d.Total.Epoch)
	v.Request.grow(b.Size, rest, d.Total.Epoch)
	device.grow(b.Size, rest, heap.Slot(&d.Devices, slot).Epoch)
	return rest
}

// begin makes everything unknown that was counted so far.
func (r *Requests) begin(d *AccountStats) {
	r.known = true
	r.total.begin(&d.Total)
	for slot := range d.Devices {
		heap.Slot(&r.devices, slot).begin(&d.Devices[slot].Meter)
	}
	for n := range d.Cells.List {
		d.Cells.List[n].Request.unknown = d.Cells.List[n].Share
	}
}

// Closed takes in the end of a block with what Opened returned; of blocks from before anything was known that is 0.
func (r *Requests) Closed(rest uint32, b *heap.Block, d *AccountStats, v *Cell) {
	if !r.known || rest == 1 {
		return
	}
	slot := DeviceSlot(b.Device)
	r.total.shrink(b.Size, rest, d.Total.Epoch)
	v.Request.shrink(b.Size, rest, d.Total.Epoch)
	r.devices[slot].shrink(b.Size, rest, d.Devices[slot].Epoch)
}

// Moved takes a block's part from one cell to another; past: also in what stood at the peak, of the given epoch.
func (r *Requests) Moved(word uint32, size, epoch uint64, from, to *Cell, past bool) (rest, unknown uint64) {
	if !r.known {
		return 0, size
	}
	from.Request.shrink(size, word, epoch)
	to.Request.grow(size, word, epoch)
	unknown = size
	if word > 0 {
		rest, unknown = uint64(word-1), 0
	}
	if past && word == 0 {
		from.Request.unknown.AtPeak -= unknown
		to.Request.unknown.AtPeak += unknown
	} else if past && rest > 0 {
		from.Request.rest.AtPeak -= rest
		to.Request.rest.AtPeak += rest
	}
	return rest, unknown
}

// OfCell returns what a cell's blocks were requested with at the peak of the given epoch, and now; nil if nothing is
// known of any.
func (r *Requests) OfCell(v *Cell, epoch uint64) (atPeak, live *report.Requested) {
	if !r.known {
		return nil, nil
	}
	return requestedOf(v.Peak(epoch), v.Request.rest.Peak(epoch), v.Request.unknown.Peak(epoch)),
		requestedOf(v.Current, v.Request.rest.Current, v.Request.unknown.Current)
}

// Known reports whether anything is known by now.
func (r *Requests) Known() bool { return r.known }

// OfHeld is the same for what was held at a moment.
func (r *Requests) OfHeld(h *Held) *report.Requested {
	if !r.known {
		return nil
	}
	return requestedOf(h.Bytes, h.Rest, h.Unknown)
}

// Live returns what is live on all devices; nil if nothing is known.
func (r *Requests) Live(d *AccountStats) *report.Requested {
	if !r.known {
		return nil
	}
	return r.total.live(&d.Total)
}

// Of completes a level of all devices, or of the one in a slot.
func (r *Requests) Of(l *report.Level, d *AccountStats, slot int) {
	if !r.known {
		return
	}
	shares, m := &r.total, &d.Total
	if slot != AllSlots {
		if slot >= len(r.devices) {
			return
		}
		shares, m = &r.devices[slot], &d.Devices[slot].Meter
	}
	l.RequestedAtPeak, l.RequestedLive = shares.atPeak(m), shares.live(m)
}

// Now lists what is live: on all devices, then by device slot; nil if nothing is known.
func (r *Requests) Now(d *AccountStats) []*report.Requested {
	if !r.known {
		return nil
	}
	list := []*report.Requested{r.total.live(&d.Total)}
	for slot := range r.devices {
		list = append(list, r.devices[slot].live(&d.Devices[slot].Meter))
	}
	return list
}

// AtPeak is what was live on all devices at the peak of the total, as the only row; nil if nothing is known.
func (r *Requests) AtPeak(d *AccountStats) []*report.Requested {
	if !r.known {
		return nil
	}
	return []*report.Requested{r.total.atPeak(&d.Total)}
}

// MeterOf returns the totals of a device, empty ones for a device that has none.
func (d *AccountStats) MeterOf(slot int) *heap.Meter {
	if slot < len(d.Devices) {
		return &d.Devices[slot].Meter
	}
	return &heap.Meter{}
}

// AllSlots stands for all devices together.
const AllSlots = -1
