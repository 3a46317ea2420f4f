package analyzer

import (
	"memtrace/analyzer/device"
	"memtrace/analyzer/heap"
	"memtrace/analyzer/meter"
	"memtrace/analyzer/moment"
	"memtrace/analyzer/profile"
)

// now copies the running totals.
func (c *collector) now(time int64) *moment.State {
	m := &moment.State{Time: time, Exact: !c.losses.begun}
	for a, d := range c.details {
		if d == nil {
			continue
		}
		m.Allocs[a] = d.Total.Allocs
		m.Devices[a] = collect(d.Devices, func(v *profile.DeviceMeter) uint64 { return v.Current })
		m.Held[a] = d.Cells.Holding(nil, currentShare, currentShare)
	}
	c.copyHoldings(m, func(v *meter.Share) uint64 { return v.Current })
	m.Requested = c.requests.Now(c.details[heap.AccountFramework])
	m.Waiting = c.allocator.Now()
	if list := m.Held[heap.AccountFramework]; !c.requests.Known() {
		for i := range list {
			list[i].Unknown = list[i].Bytes
		}
	}
	if c.watcher != nil {
		m.Watched = c.watcher.Moment()
	}
	return m
}

// peakOf returns the state at the peak of the main level: the framework's if it has blocks, else the driver's.
func (c *collector) peakOf(main heap.Account) *moment.State {
	d := c.details[main]
	epoch := d.Total.Epoch
	m := &moment.State{Time: d.Total.PeakTime, Exact: c.losses.after(main, epoch)}
	m.Devices[main] = collect(d.Devices, func(v *profile.DeviceMeter) uint64 { return v.Part.Peak(epoch) })
	atPeak := func(v *meter.Share) uint64 { return v.Peak(epoch) }
	m.Held[main] = d.Cells.Holding(nil, atPeak, atPeak)
	if main == heap.AccountFramework {
		m.Devices[heap.AccountDriver] = collect(c.details[heap.AccountDriver].Devices,
			func(v *profile.DeviceMeter) uint64 {
				return v.AtFramework.Peak(epoch)
			})
		c.copyHoldings(m, atPeak)
		m.Waiting = c.allocator.AtPeak(epoch)
	}
	return m
}

func (c *collector) copyHoldings(m *moment.State, value func(*meter.Share) uint64) {
	for i := range c.device.Holdings.Devices {
		d := &c.device.Holdings.Devices[i]
		m.ByLibrary = append(m.ByLibrary, collect(d.ByLibrary, func(v *device.LibraryBytes) uint64 {
			return value(&v.Share)
		}))
		m.Reported = append(m.Reported, value(&d.Reserved))
	}
}

func collect[T any](list []T, value func(*T) uint64) []uint64 {
	values := make([]uint64, len(list))
	for i := range list {
		values[i] = value(&list[i])
	}
	return values
}
