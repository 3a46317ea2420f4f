package analyzer

import (
	"errors"
	"fmt"
	"io"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/cause"
	"memtrace/internal/heap"
	"memtrace/internal/oom"
	"memtrace/trace"
)

// grown replays the blocks of PyTorch's allocator as if its segments grew.
type grown struct {
	segments map[segmentOf]*segment
	blocks   map[addressOn]placed
	mapped   uint64                      // by all segments
	on       map[int16]uint64            // by those of a device
	room     map[int16]uint64            // what a device has for all of them; none: not known
	refused  map[uint64]*report.OOMEvent // by order number

	recorded map[int16]uint64 // bytes that the allocator had reserved, by device
	reserved uint64           // by all devices
	// the most of mapped and of reserved
	mostMapped, mostReserved uint64
}

// segmentOf is what has a growing segment of its own.
type segmentOf struct {
	stream uint64
	pool   uint32
	device int16
	small  bool
}

type addressOn struct {
	addr   uint64
	device int16
}

type placed struct {
	in *segment
	at *piece
}

// WantsGrown reports whether ReadGrown can say more of a summary: much is reserved and unused, or idle memory was of no
// use when memory ran out, and segments could grow.
func WantsGrown(s *report.Summary) bool {
	w := cause.WasteOf(s)
	return w != nil && w.CouldGrow || len(fragmented(s)) > 0
}

// fragmented are the refusals, by order number, that segments that grow are advised for.
func fragmented(s *report.Summary) map[uint64]*report.OOMEvent {
	found := make(map[uint64]*report.OOMEvent)
	if s.Bounds != nil || !cause.CouldGrow(s) {
		return found
	}
	for i := range s.OOM.Events {
		if e := &s.OOM.Events[i]; e.LostRecords == 0 && oom.Fragmented(e) {
			found[e.Seq] = e
		}
	}
	return found
}

// ReadGrown reads the trace of a summary once more, and says in IdleAtPeak how much less PyTorch would have reserved at
// most if its segments grew, and in the advice for refusals how much less it would have had reserved by then.
func ReadGrown(src trace.Source, s *report.Summary) error {
	g := &grown{segments: make(map[segmentOf]*segment), blocks: make(map[addressOn]placed),
		recorded: make(map[int16]uint64), on: make(map[int16]uint64), room: make(map[int16]uint64),
		refused: fragmented(s)}
	for _, e := range g.refused {
		g.room[e.Device] = max(g.room[e.Device], e.Allocator.ReservedBytes+e.FreeBytes)
	}
	if p, ok := src.(trace.Projector); ok {
		p.Skip(trace.FieldTime, trace.FieldThread, trace.FieldTag, trace.FieldStack, trace.FieldPyStack,
			trace.FieldAllocated, trace.FieldOp, trace.FieldOpThread)
	}
	for {
		events, err := src.ReadBatch()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read blocks: %w", err)
		}
		for i := range events {
			g.event(&events[i])
		}
	}
	if s.IdleAtPeak != nil {
		s.IdleAtPeak.GrowingFrees = g.mostReserved - min(g.mostReserved, g.mostMapped)
	}
	return nil
}

func (g *grown) event(e *trace.Event) {
	switch {
	case e.Kind == trace.EventEmptyCache && e.Count == trace.Ended:
		for device := range g.on {
			g.trim(device)
		}
	case e.Kind == trace.EventOOM:
		if v := g.refused[e.Seq]; v != nil {
			g.trim(e.Device)
			oom.Grown(v, v.Allocator.ReservedBytes-min(v.Allocator.ReservedBytes, g.on[e.Device]))
		}
	case e.Level != cuda.LevelFramework || e.Status != 0 || heap.AccountOf(e) != heap.AccountFramework:
	case e.Kind == trace.EventAlloc:
		g.alloc(e)
		g.count(e)
	case e.Kind == trace.EventFree:
		at := addressOn{e.Addr, e.Device}
		if b, known := g.blocks[at]; known {
			delete(g.blocks, at)
			b.in.release(b.at)
		}
		g.count(e)
	}
}

// trim gives back what no block is in, as the allocator does before it gives up.
func (g *grown) trim(device int16) {
	for of, s := range g.segments {
		if of.pool == 0 && of.device == device {
			before := s.mapped
			s.trim()
			g.mapped -= before - s.mapped
			g.on[device] -= before - s.mapped
		}
	}
}

func (g *grown) alloc(e *trace.Event) {
	if _, own := e.OwnPool(); own {
		return
	}
	const unit = 512 // of sizes of blocks
	size := e.Size
	if e.Rest > 0 && e.Rest-1 <= size {
		size = max((size-(e.Rest-1)+unit-1)/unit*unit, unit)
	}
	of := segmentOf{e.Stream, e.Pool, e.Device, size <= mostSmall}
	s := g.segments[of]
	if s == nil {
		s = newSegment(report.GrowingPage)
		if of.small {
			s = newSegment(smallPage)
		}
		g.segments[of] = s
	}
	if room := g.room[e.Device]; room > 0 && g.on[e.Device]+s.needs(size) > room {
		g.trim(e.Device)
	}
	before := s.mapped
	if at := s.alloc(size); at != nil {
		g.blocks[addressOn{e.Addr, e.Device}] = placed{s, at}
	}
	g.mapped += s.mapped - before
	g.on[e.Device] += s.mapped - before
	g.mostMapped = max(g.mostMapped, g.mapped)
}

// count takes in what the allocator says that it has reserved.
func (g *grown) count(e *trace.Event) {
	g.reserved += e.Reserved - g.recorded[e.Device]
	g.recorded[e.Device] = e.Reserved
	g.mostReserved = max(g.mostReserved, g.reserved)
}
