package heap

import (
	"math/bits"

	"memtrace/analyzer/report"
)

// lifetimeBuckets covers every int64 number of nanoseconds: bucket i holds lives of less than 10^(i+1) ns.
const lifetimeBuckets = 19

// Lifetimes is a histogram by powers of ten.
type Lifetimes struct {
	freed     uint64
	temporary uint64
	tempBytes uint64
	count     [lifetimeBuckets]uint64
	bytes     [lifetimeBuckets]uint64
}

func (l *Lifetimes) Add(size uint64, life int64, temporary bool) {
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

// Hist leaves out the empty buckets at both ends.
func (l *Lifetimes) Hist() report.LifetimeHist {
	h := report.LifetimeHist{FreedCount: l.freed, TemporaryCount: l.temporary, TemporaryBytes: l.tempBytes,
		Buckets: []report.LifetimeBucket{}}
	first, last := 0, lifetimeBuckets-1
	for first < lifetimeBuckets && l.count[first] == 0 {
		first++
	}
	for last >= first && l.count[last] == 0 {
		last--
	}
	for i := first; i <= last; i++ {
		h.Buckets = append(h.Buckets, report.LifetimeBucket{BelowNS: powersOfTen[i+1], Count: l.count[i],
			Bytes: l.bytes[i]})
	}
	return h
}
