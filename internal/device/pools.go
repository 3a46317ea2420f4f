package device

import (
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/heap"
)

// Pools remember what a framework's allocator handed out of its private pools, so that its segments can be told apart:
// one that is idle has no block that says whose it is. The zero value remembers nothing.
type Pools struct {
	at map[pooledAt]pooled
}

type pooledAt struct {
	addr   uint64
	device int16
}

type pooled struct {
	seq, size uint64
	pool      uint32
}

// maxPooled bounds the addresses that are remembered; graphs use the same ones over and over.
const maxPooled = 1 << 16

// Opened takes in a new block, which came from a private pool if the number is not 0.
func (p *Pools) Opened(b *heap.Block, pool uint32) {
	if pool == 0 {
		return
	}
	at := pooledAt{b.Addr, b.Device}
	if p.at == nil {
		p.at = make(map[pooledAt]pooled)
	}
	if _, known := p.at[at]; known || len(p.at) < maxPooled {
		p.at[at] = pooled{b.Seq, b.Size, pool}
	}
}

// sort gives each segment of a device its pool; 0 is the common one. A block that is older than a segment lay in
// another one. Of several the latest one says it.
func (p *Pools) sort(device int16, segments []Span) {
	latest := make([]uint64, len(segments))
	for at, b := range p.at {
		if at.device != device {
			continue
		}
		for i := range segments {
			if s := &segments[i]; at.addr < s.End && s.Start < at.addr+b.size && b.seq > max(s.seq, latest[i]) {
				s.pool, latest[i] = b.pool, b.seq
			}
		}
	}
}

// private lists the private pools that segments belong to, in the order of their numbers.
func private(segments, blocks []Span) []report.PrivatePool {
	bySegments := make(map[uint32][]Span)
	for _, s := range segments {
		if s.pool != 0 {
			bySegments[s.pool] = append(bySegments[s.pool], s)
		}
	}
	var list []report.PrivatePool
	for pool, segments := range bySegments {
		v := report.PrivatePool{Number: pool}
		for _, s := range segments {
			v.ReservedBytes += s.End - s.Start
		}
		v.IdleBytes = fragmentsOf(segments, blocks).FreeBytes
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b report.PrivatePool) int { return int(int64(a.Number) - int64(b.Number)) })
	return list
}
