package profile

import (
	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	// AccountStats is one account in full: per device, per origin, and by lifetime. Only the driver and the framework
	// account have one.
)

type AccountStats struct {
	Total     heap.Meter
	Devices   []DeviceMeter // by device slot
	Cells     Cells
	Life      heap.Lifetimes
	PeakEvent uint64 // with which the latest maximum was reached
}

// DeviceMeter has its own peak, and also its part of the peak of all devices together and, for another account, its
// value at the framework's peak.
type DeviceMeter struct {
	heap.Meter
	Part        heap.Share
	AtFramework heap.Share
}

// Open adds a block to its cell and its device; framework is the epoch of the framework's total. The parts must be
// updated before the total: see meter.grow.
func (d *AccountStats) Open(b *heap.Block, v *Cell, framework uint64) {
	epoch := d.Total.Epoch
	v.Grow(b.Size, epoch)
	v.Allocs++
	v.AllocBytes += b.Size
	dev := heap.Slot(&d.Devices, DeviceSlot(b.Device))
	dev.Part.Grow(b.Size, epoch)
	if b.Account != heap.AccountFramework {
		dev.AtFramework.Grow(b.Size, framework)
	}
	dev.Grow(b.Size, b.Time)
	if d.Total.Grow(b.Size, b.Time); d.Total.Epoch != epoch {
		d.PeakEvent = d.Total.Events()
	}
}

func (d *AccountStats) Close(b *heap.Block, v *Cell, framework uint64) {
	epoch := d.Total.Epoch
	v.Shrink(b.Size, epoch)
	v.Frees++
	dev := &d.Devices[DeviceSlot(b.Device)]
	dev.Part.Shrink(b.Size, epoch)
	if b.Account != heap.AccountFramework {
		dev.AtFramework.Shrink(b.Size, framework)
	}
	dev.Shrink(b.Size)
	d.Total.Shrink(b.Size)
}

// Pass counts a block that was never seen live.
func (d *AccountStats) Pass(b *heap.Block, v *Cell) {
	v.Add(Counts{Allocs: 1, Frees: 1, AllocBytes: b.Size})
	heap.Slot(&d.Devices, DeviceSlot(b.Device)).Pass(b.Size)
	d.Total.Pass(b.Size)
}

func (d *AccountStats) DeviceLevel(slot int) report.Level {
	if slot < len(d.Devices) {
		return heap.LevelOf(&d.Devices[slot].Meter)
	}
	return report.Level{}
}
