package analyzer

import "math/bits"

// detail is one account in full: per device, per origin, and by lifetime. Only the driver and the framework account have one.
type detail struct {
	total      meter
	devices    []deviceMeter // by device slot
	cells      cells
	life       lifetimes
	peakAllocs uint64 // allocations when the latest maximum was reached
}

// deviceMeter has a peak of its own, and also knows its part of the peak of all devices together and its value at the framework's peak.
type deviceMeter struct {
	meter
	part        share
	atFramework share
}

// at returns the item of a slice by index, growing the slice as needed.
func at[T any](list *[]T, i int) *T {
	if i >= len(*list) {
		extend(list, i+1)
	}
	return &(*list)[i]
}

// extend is apart from at so that at can be inlined.
func extend[T any](list *[]T, n int) { *list = append(*list, make([]T, n-len(*list))...) }

// open adds a block to its cell and its device; framework is the epoch of the framework's total. The parts go before the total: see meter.grow.
func (d *detail) open(b *Block, v *cell, framework uint64) {
	epoch := d.total.epoch
	v.grow(b.Size, epoch)
	v.allocs++
	v.allocBytes += b.Size
	dev := at(&d.devices, deviceSlot(b.Device))
	dev.part.grow(b.Size, epoch)
	dev.atFramework.grow(b.Size, framework)
	dev.grow(b.Size, b.Time)
	if d.total.grow(b.Size, b.Time); d.total.epoch != epoch {
		d.peakAllocs = d.total.allocs
	}
}

func (d *detail) close(b *Block, v *cell, framework uint64) {
	epoch := d.total.epoch
	v.shrink(b.Size, epoch)
	v.frees++
	dev := &d.devices[deviceSlot(b.Device)]
	dev.part.shrink(b.Size, epoch)
	dev.atFramework.shrink(b.Size, framework)
	dev.shrink(b.Size)
	d.total.shrink(b.Size)
}

// pass counts a block that was never seen live.
func (d *detail) pass(b *Block, v *cell) {
	v.add(counts{allocs: 1, frees: 1, allocBytes: b.Size})
	at(&d.devices, deviceSlot(b.Device)).pass(b.Size)
	d.total.pass(b.Size)
}

// lifetimeBuckets covers every int64 number of nanoseconds: bucket i holds lives of less than 10^(i+1) ns.
const lifetimeBuckets = 19

// lifetimes is a histogram by powers of ten.
type lifetimes struct {
	freed     uint64
	temporary uint64
	tempBytes uint64
	count     [lifetimeBuckets]uint64
	bytes     [lifetimeBuckets]uint64
}

func (l *lifetimes) add(size uint64, life int64, temporary bool) {
	i := lifetimeBucket(uint64(max(life, 0)))
	l.freed++
	l.count[i]++
	l.bytes[i] += size
	if temporary {
		l.temporary++
		l.tempBytes += size
	}
}

var powersOfTen = func() (p [lifetimeBuckets + 1]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

// lifetimeBucket returns the number of decimal digits less one, from the number of binary ones.
func lifetimeBucket(ns uint64) int {
	digits := bits.Len64(ns|1) * 1233 >> 12 // log10(2) in 4096ths; exact or one too low
	if ns >= powersOfTen[min(digits, lifetimeBuckets)] {
		digits++
	}
	return min(max(digits-1, 0), lifetimeBuckets-1)
}

// hist leaves out the empty buckets at both ends.
func (l *lifetimes) hist() LifetimeHist {
	h := LifetimeHist{FreedCount: l.freed, TemporaryCount: l.temporary, TemporaryBytes: l.tempBytes, Buckets: []LifetimeBucket{}}
	first, last := 0, lifetimeBuckets-1
	for first < lifetimeBuckets && l.count[first] == 0 {
		first++
	}
	for last >= first && l.count[last] == 0 {
		last--
	}
	for i := first; i <= last; i++ {
		h.Buckets = append(h.Buckets, LifetimeBucket{BelowNS: powersOfTen[i+1], Count: l.count[i], Bytes: l.bytes[i]})
	}
	return h
}
