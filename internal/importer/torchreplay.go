package importer

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"memtrace/cuda"
	"memtrace/trace"
)

// replay writes what was live before the history and then the records of all devices, in the order of their time.
func (t *torchImport) replay() (Result, error) {
	for _, d := range t.devices {
		t.recorded = t.recorded || d.history.count > 0
	}
	if t.timeless = t.recorded && t.base == math.MaxInt64; t.base == math.MaxInt64 {
		t.base = 0
	}
	t.apart = t.sharesAddresses()
	streams := []*torchDevice{{history: t.notes}}
	for _, index := range slices.Sorted(maps.Keys(t.devices)) {
		d := t.devices[index]
		if len(d.before.end)+len(d.before.returned) > mostSegments {
			return Result{}, errSegments
		}
		t.begin(d)
		streams = append(streams, d)
	}
	if err := t.merge(streams); err != nil {
		return Result{}, err
	}
	for _, d := range t.devices {
		t.differing += d.differing()
	}
	if t.base > 0 && t.base < math.MaxInt64/1000 {
		t.out.Info(trace.Info{"clock.base_unix_ns": fmt.Sprint(t.base * 1000)})
	}
	brief := "PyTorch's own memory only; no threads"
	if !t.recorded {
		brief = "one moment of PyTorch's own memory; no history, so no call stacks"
	}
	return finish(t.out, Result{Kind: torchKind, Brief: brief, Events: t.events, Lacks: t.lacks()})
}

// sharesAddresses reports whether two devices have memory at one address, which one process never sees.
func (t *torchImport) sharesAddresses() bool {
	owner := map[uint64]*torchDevice{}
	shared := false
	for _, d := range t.devices {
		claim := func(addr uint64) {
			if other := owner[addr]; other != nil && other != d {
				shared = true
			}
			owner[addr] = d
		}
		for addr := range d.before.decided {
			claim(addr)
		}
		for addr := range d.before.given {
			claim(addr)
		}
		for _, s := range d.before.end {
			claim(s.addr)
			for i := range s.blocks {
				claim(s.blocks[i].addr)
			}
		}
	}
	return shared
}

// merge replays streams by time; within a stream the order of the records stays.
func (t *torchImport) merge(streams []*torchDevice) error {
	type head struct {
		entry
		of *torchDevice
	}
	var heads []head
	for _, d := range streams {
		if err := d.history.rewind(); err != nil {
			return err
		}
		e, ok, err := d.history.next()
		if err != nil {
			return err
		}
		if ok {
			heads = append(heads, head{e, d})
		}
	}
	for len(heads) > 0 {
		first := 0
		for i := range heads {
			if cmp.Or(cmp.Compare(heads[i].time, heads[first].time), cmp.Compare(heads[i].order, heads[first].order)) <
				0 {
				first = i
			}
		}
		h := &heads[first]
		if t.record(h.of, &h.entry); len(h.of.segments) > mostSegments || h.of.blocks != nil &&
			len(h.of.blocks.segments) > mostSegments {
			return errSegments
		}
		e, ok, err := h.of.history.next()
		if err != nil {
			return err
		}
		if h.entry = e; !ok {
			heads = slices.Delete(heads, first, first+1)
		}
	}
	return nil
}

// begin writes what a device held before the history.
func (t *torchImport) begin(d *torchDevice) {
	d.blocks.settings = t.settings
	segments, blocks := d.before.state(&t.settings)
	for _, s := range segments {
		size := s.end - s.start
		d.segments.put(s.span)
		d.reserved += size
		t.emit(d, trace.EventAlloc, cuda.LevelDriver, s.start, size, &entry{stack: t.olderStack(s.stack), tag: s.tag})
		d.blocks.addOlder(blockSegment{start: s.start, end: s.end, small: s.small || size == smallSeg,
			expandable: s.expandable, known: !s.expandable}, within(blocks, s.span))
	}
	if d.index == hostDevice {
		return
	}
	for _, b := range blocks {
		d.blocks.taken[b.addr] = b.size
		if b.state == statePending {
			continue
		}
		d.live[b.addr] = b.size
		d.allocated += b.size
		t.emit(d, trace.EventAlloc, cuda.LevelFramework, b.addr, b.size, &entry{size: b.request,
			stack: t.olderStack(b.stack)})
		t.older++
	}
}

// olderStack is the stack of what was there when a history began; most of that has none.
func (t *torchImport) olderStack(s stackRef) stackRef {
	if s == (stackRef{}) && t.recorded {
		s.native, s.python = t.out.Stack([]BuilderFrame{{File: trace.BeforeFile, Function: trace.BeforeFunction}})
	}
	return s
}

// within returns the blocks, in the order of their addresses, that are in a range.
func within(blocks []block, r span) []block {
	find := func(at uint64) int {
		i, _ := slices.BinarySearchFunc(blocks, at, func(b block, at uint64) int { return cmp.Compare(b.addr, at) })
		return i
	}
	return blocks[find(r.start):find(r.end)]
}

// record replays a record.
func (t *torchImport) record(d *torchDevice, e *entry) {
	host := d.index == hostDevice
	d.records++
	switch e.action {
	case actionAlloc:
		if !host {
			t.alloc(d, e)
		}
	case actionFreeRequested:
		size, ok := d.live[e.addr]
		if !ok {
			return
		}
		delete(d.live, e.addr)
		d.allocated -= size
		t.emit(d, trace.EventFree, cuda.LevelFramework, e.addr, size, e)
	case actionFreeCompleted:
		d.blocks.release(e.addr)
	case actionSegmentAlloc, actionSegmentMap:
		d.segments.put(span{e.addr, e.addr + e.size})
		d.reserved += e.size
		d.blocks.addSegment(blockSegment{start: e.addr, end: e.addr + e.size, small: e.size == smallSeg,
			known: e.action == actionSegmentAlloc, expandable: e.action == actionSegmentMap})
		t.emit(d, trace.EventAlloc, cuda.LevelDriver, e.addr, e.size, e)
	case actionSegmentFree, actionSegmentUnmap:
		t.unmap(d, e)
	case actionOOM:
		t.out.Event(trace.Event{Kind: trace.EventOOM, Level: cuda.LevelFramework, Device: d.index, Size: e.size,
			Time: t.time(e), Thread: t.thread, Stack: e.stack.native, PyStack: e.stack.python, Tag: e.tag,
			Allocated: d.allocated, Reserved: d.reserved})
		t.events++
	case actionMark:
		t.out.Event(trace.Event{Kind: trace.EventMark, Time: t.time(e), Thread: t.thread, Name: e.tag})
		t.events++
	default:
		t.unknown++
	}
}

func (t *torchImport) alloc(d *torchDevice, e *entry) {
	if size, ok := d.live[e.addr]; ok { // its free is missing
		d.allocated -= size
	}
	size := e.block
	if size == 0 && d.before.decided[e.addr] == d.records { // the block that is there at the end
		size = d.before.atEnd[e.addr].size
	}
	size, exact := d.blocks.alloc(e.addr, e.size, size)
	if !exact {
		t.inexact++
	}
	d.live[e.addr] = size
	d.allocated += size
	t.emit(d, trace.EventAlloc, cuda.LevelFramework, e.addr, size, e)
}

// differing counts blocks that are live at the end by the history or by the segments, and not the same by both.
func (d *torchDevice) differing() (n int) {
	if len(d.before.end) == 0 || d.index == hostDevice {
		return 0
	}
	for addr, size := range d.live {
		if d.before.atEnd[addr].size != size {
			n++
		}
	}
	for addr := range d.before.atEnd {
		if _, live := d.live[addr]; !live {
			n++
		}
	}
	return n
}

// unmap releases a range to the driver: every piece that overlaps it is freed as a whole, and its parts outside the
// range are allocated again, since a trace's blocks end as a whole.
func (t *torchImport) unmap(d *torchDevice, e *entry) {
	gone := span{e.addr, e.addr + e.size}
	touched := d.segments.touching(gone)
	if e.action == actionSegmentFree {
		d.blocks.removeSegment(e.addr)
		touched, gone = d.segments.at(e.addr)
	}
	for _, p := range d.segments.take(touched) {
		t.emit(d, trace.EventFree, cuda.LevelDriver, p.start, p.end-p.start, e)
		d.reserved -= min(d.reserved, min(p.end, gone.end)-max(p.start, gone.start))
		for _, rest := range []span{{p.start, gone.start}, {gone.end, p.end}} {
			if rest.start < rest.end {
				d.segments.put(rest)
				t.emit(d, trace.EventAlloc, cuda.LevelDriver, rest.start, rest.end-rest.start, e)
			}
		}
	}
}

// pieces are ranges that the driver returned, in the order of their addresses.
type pieces []span

func (p *pieces) find(at uint64) int {
	i, _ := slices.BinarySearchFunc(*p, at, func(s span, at uint64) int { return cmp.Compare(s.start, at) })
	return i
}

// put adds a range, in place of one that begins where it does.
func (p *pieces) put(s span) {
	i := p.find(s.start)
	if i < len(*p) && (*p)[i].start == s.start {
		(*p)[i] = s
		return
	}
	*p = slices.Insert(*p, i, s)
}

// places are the indexes [first, last) of pieces.
type places struct{ first, last int }

// touching are the ranges that r touches.
func (p *pieces) touching(r span) (at places) {
	if r.end <= r.start {
		return places{}
	}
	at.first = p.find(r.start)
	if at.first > 0 && (*p)[at.first-1].end > r.start {
		at.first--
	}
	for at.last = at.first; at.last < len(*p) && (*p)[at.last].start < r.end; at.last++ {
	}
	return at
}

// at is the range that begins at an address, and the range itself.
func (p *pieces) at(start uint64) (places, span) {
	i := p.find(start)
	if i == len(*p) || (*p)[i].start != start {
		return places{}, span{}
	}
	return places{i, i + 1}, (*p)[i]
}

// take removes and returns ranges.
func (p *pieces) take(at places) []span {
	taken := slices.Clone((*p)[at.first:at.last])
	*p = slices.Delete(*p, at.first, at.last)
	return taken
}
