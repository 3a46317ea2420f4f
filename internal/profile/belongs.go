package profile

import (
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// Place is the stream for which a block was allocated, and its private pool of the framework's allocator, 0 the common
// one.
type Place struct {
	Stream uint64
	Pool   uint32
}

// Places numbers places in the order of their first use; 0 is the default stream and the common pool.
type Places struct {
	list    []Place // after the first
	index   map[Place]uint16
	streams map[uint64]int // number of a stream that is not the default one, from 1
	latest  Place
	number  uint16
}

// maxPlaces bounds them; programs have some dozens of streams. Further ones count as the first.
const maxPlaces = 1 << 15

// Of returns the number of an allocation's place.
func (p *Places) Of(stream uint64, pool uint32) uint16 {
	at := Place{stream, pool}
	switch {
	case at == Place{}:
		return 0
	case at != p.latest:
		p.latest, p.number = at, p.add(at)
	}
	return p.number
}

func (p *Places) add(at Place) uint16 {
	n, known := p.index[at]
	if known || len(p.list) == maxPlaces {
		return n
	}
	if p.index == nil {
		p.index, p.streams = make(map[Place]uint16), make(map[uint64]int)
	}
	p.list = append(p.list, at)
	n = uint16(len(p.list))
	p.index[at] = n
	if at.Stream != 0 && p.streams[at.Stream] == 0 {
		p.streams[at.Stream] = len(p.streams) + 1
	}
	return n
}

// At returns the place of a number.
func (p *Places) At(number uint16) Place {
	if number == 0 || int(number) > len(p.list) {
		return Place{}
	}
	return p.list[number-1]
}

// Counts returns the number of streams other than the default one, and of private pools.
func (p *Places) Counts() (streams, pools int) {
	seen := make(map[uint32]bool)
	for _, at := range p.list {
		seen[at.Pool] = at.Pool != 0 && at.Pool < trace.OwnPool
	}
	for _, private := range seen {
		if private {
			pools++
		}
	}
	return len(p.streams), pools
}

// OwnPools lists the pools of the program's own, by name.
func (r *Resolver) OwnPools() (names []string) {
	for _, at := range r.Places.list {
		if at.Pool >= trace.OwnPool {
			names = append(names, r.Tables.String(trace.StringID(at.Pool&^trace.OwnPool)))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Identifiers of groupings by place: the number, and above it whether the origin has any.
const (
	placeless    = 1 << 16
	notRecorded  = 2 << 16
	placeNumbers = 1<<16 - 1
)

// streamID distinguishes memory that has no stream from blocks whose stream was not recorded.
func streamID(r *Resolver, o *Origin) uint64 {
	if o.account != heap.AccountFramework && o.kind != cuda.MemoryAsync {
		return placeless
	}
	if o.account == heap.AccountFramework && !r.StreamsKnown && r.Places.At(o.Place).Stream == 0 {
		return notRecorded
	}
	return uint64(o.Place)
}

// poolID does the same for pools, from which a framework's blocks come and which the program's own pools hold.
func poolID(r *Resolver, o *Origin) uint64 {
	switch {
	case r.Places.At(o.Place).Pool >= trace.OwnPool:
		return uint64(o.Place)
	case o.account != heap.AccountFramework:
		return placeless
	}
	if !r.PoolsKnown && r.Places.At(o.Place).Pool == 0 {
		return notRecorded
	}
	return uint64(o.Place)
}

func streamKey(r *Resolver, id uint64) string {
	at := r.Places.At(uint16(id & placeNumbers))
	switch {
	case id&notRecorded != 0:
		return "(not recorded)"
	case id&placeless != 0:
		return "(no stream)"
	case at.Stream == 0:
		return "default stream"
	}
	return fmt.Sprintf("stream %d", r.Places.streams[at.Stream])
}

// streamLabel adds the handle, which is another one in every run.
func streamLabel(r *Resolver, id uint64) string {
	if at := r.Places.At(uint16(id & placeNumbers)); at.Stream != 0 {
		return fmt.Sprintf("%s (%#x)", streamKey(r, id), at.Stream)
	}
	return ""
}

// poolKey names a pool as PyTorch does: a pair, of which the first number counts pools created by captures of graphs,
// the second those created by the program. poolKind leaves out the number of a private pool, which depends on the order
// of captures.
func poolKind(key string) string {
	if rest, private := strings.CutPrefix(key, "private pool ("); private {
		_, of, _ := strings.Cut(rest, ")")
		return "private pools" + of
	}
	return key
}

func poolKey(r *Resolver, id uint64) string {
	pool := r.Places.At(uint16(id & placeNumbers)).Pool
	switch {
	case pool >= trace.OwnPool:
		return report.PoolOwner(r.Tables.String(trace.StringID(pool &^ trace.OwnPool)))
	case id&notRecorded != 0:
		return "(not recorded)"
	case id&placeless != 0:
		return "(no pool)"
	case pool == 0:
		return "common pool"
	case pool&1 != 0:
		return fmt.Sprintf("private pool (0, %d)", pool/2)
	}
	return fmt.Sprintf("private pool (%d, 0), of graphs", pool/2)
}
