package analyzer

import (
	"math"

	"memtrace/trace"
)

// Requested divides a framework's blocks by what the program requested: an allocator rounds sizes up, and hands a block out whole where its rest is not worth
// splitting off. The three add up to the level's bytes.
type Requested struct {
	Bytes        uint64 `json:"bytes"`         // requested
	RestBytes    uint64 `json:"rest_bytes"`    // in the same blocks beyond that
	UnknownBytes uint64 `json:"unknown_bytes"` // in blocks whose request is not known
}

// requestShares are the parts of one meter's total that Requested is made of.
type requestShares struct{ rest, unknown share }

func (r *requestShares) grow(size uint64, rest uint32, epoch uint64) {
	if rest == 0 {
		r.unknown.grow(size, epoch)
	} else {
		r.rest.grow(uint64(rest-1), epoch)
	}
}

func (r *requestShares) shrink(size uint64, rest uint32, epoch uint64) {
	if rest == 0 {
		r.unknown.shrink(size, epoch)
	} else {
		r.rest.shrink(uint64(rest-1), epoch)
	}
}

func (r *requestShares) live(m *meter) *Requested {
	return requestedOf(m.current, r.rest.current, r.unknown.current)
}

func (r *requestShares) atPeak(m *meter) *Requested {
	return requestedOf(m.peak, r.rest.peak(m.epoch), r.unknown.peak(m.epoch))
}

func requestedOf(bytes, rest, unknown uint64) *Requested {
	return &Requested{Bytes: bytes - rest - unknown, RestBytes: rest, UnknownBytes: unknown}
}

// requests follow what the live blocks of a framework were requested with.
type requests struct {
	known   bool     // of any block
	rests   []uint32 // by block id: 1 + the bytes beyond the request, 0 unknown
	total   requestShares
	devices []requestShares // by device slot
}

// opened comes before the detail counts the block, closed as well: see meter.grow.
func (r *requests) opened(id uint32, b *Block, e *trace.Event, d *detail) {
	rest := uint32(0)
	if e.Rest > 0 && e.Rest <= math.MaxUint32 && e.Rest <= b.Size {
		rest, r.known = uint32(e.Rest), true
	}
	*at(&r.rests, int(id)) = rest
	slot := deviceSlot(b.Device)
	r.total.grow(b.Size, rest, d.total.epoch)
	at(&r.devices, slot).grow(b.Size, rest, at(&d.devices, slot).epoch)
}

func (r *requests) closed(id uint32, b *Block, d *detail) {
	slot := deviceSlot(b.Device)
	r.total.shrink(b.Size, r.rests[id], d.total.epoch)
	r.devices[slot].shrink(b.Size, r.rests[id], d.devices[slot].epoch)
}

// of completes a level of all devices, or of the one in a slot.
func (r *requests) of(l *Level, d *detail, slot int) {
	if !r.known {
		return
	}
	shares, m := &r.total, &d.total
	if slot != allSlots {
		if slot >= len(r.devices) {
			return
		}
		shares, m = &r.devices[slot], &d.devices[slot].meter
	}
	l.RequestedAtPeak, l.RequestedLive = shares.atPeak(m), shares.live(m)
}

// now lists what is live: on all devices, then by device slot; nil if nothing is known.
func (r *requests) now(d *detail) []*Requested {
	if !r.known {
		return nil
	}
	list := []*Requested{r.total.live(&d.total)}
	for slot := range r.devices {
		list = append(list, r.devices[slot].live(&d.devices[slot].meter))
	}
	return list
}
