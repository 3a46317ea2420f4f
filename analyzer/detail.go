package analyzer

import (
	"memtrace/analyzer/heap"
	"memtrace/analyzer/meter"
	"memtrace/analyzer/profile"
)

// detail is one account in full: per device, per origin, and by lifetime. Only the driver and the framework account have one.
type detail struct {
	total      meter.Meter
	devices    []deviceMeter // by device slot
	cells      profile.Cells
	life       meter.Lifetimes
	peakAllocs uint64 // allocations when the latest maximum was reached
}

// deviceMeter has a peak of its own, and also knows its part of the peak of all devices together and its value at the framework's peak.
type deviceMeter struct {
	meter.Meter
	part        meter.Share
	atFramework meter.Share
}

// open adds a block to its cell and its device; framework is the epoch of the framework's total. The parts go before the total: see meter.grow.
func (d *detail) open(b *heap.Block, v *profile.Cell, framework uint64) {
	epoch := d.total.Epoch
	v.Grow(b.Size, epoch)
	v.Allocs++
	v.AllocBytes += b.Size
	dev := meter.Slot(&d.devices, profile.DeviceSlot(b.Device))
	dev.part.Grow(b.Size, epoch)
	dev.atFramework.Grow(b.Size, framework)
	dev.Grow(b.Size, b.Time)
	if d.total.Grow(b.Size, b.Time); d.total.Epoch != epoch {
		d.peakAllocs = d.total.Allocs
	}
}

func (d *detail) close(b *heap.Block, v *profile.Cell, framework uint64) {
	epoch := d.total.Epoch
	v.Shrink(b.Size, epoch)
	v.Frees++
	dev := &d.devices[profile.DeviceSlot(b.Device)]
	dev.part.Shrink(b.Size, epoch)
	dev.atFramework.Shrink(b.Size, framework)
	dev.Shrink(b.Size)
	d.total.Shrink(b.Size)
}

// pass counts a block that was never seen live.
func (d *detail) pass(b *heap.Block, v *profile.Cell) {
	v.Add(profile.Counts{Allocs: 1, Frees: 1, AllocBytes: b.Size})
	meter.Slot(&d.devices, profile.DeviceSlot(b.Device)).Pass(b.Size)
	d.total.Pass(b.Size)
}
