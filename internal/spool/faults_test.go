package spool

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"memtrace/internal/faults"
)

// faultySpool is a recording with faults, and what must still be there.
type faultySpool struct {
	files
	*faults.Choices
	whole   []byte          // the spool without them
	touched map[uint64]bool // numbers of the records that were written to
	silent  bool            // the counts are gone as well
	how     string
}

// geometry is where the parts of a spool are.
type geometry struct {
	rings, entries, segments            uint32
	ringsAt, indexAt, dataAt, segmentAt uint64
	dataMax                             uint64
}

func geometryOf(data []byte) geometry {
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(data[at:]) }
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(data[at:]) }
	return geometry{rings: u32(offRingsUsed), entries: u32(offIndexUsed), segments: u32(offSegmentsUsed),
		ringsAt: u64(offRingsOffset), indexAt: u64(offIndexOffset),
		dataAt: u64(offDataOffset), segmentAt: u64(offSegmentsOffset), dataMax: u64(offDataMax)}
}

// headerWords are the fields of the header, with their widths.
var headerWords = []struct{ at, width int }{
	{offVersion, 4}, {offRecordSize, 4}, {offSegmentSize, 4}, {offSegmentsMax, 4}, {offRingsMax, 4}, {offIndexMax, 4},
	{offRingsOffset, 8}, {offIndexOffset, 8}, {offDataOffset, 8},
	{offDataMax, 8}, {offSegmentsOffset, 8}, {offFileSize, 8}, {offPID, 4}, {offClockIsTSC, 4}, {offProcessStart, 8},
	{offBootHash, 8}, {offPIDNamespace, 8}, {offClockFirst, 8}, {offClockFirst + 8, 8},
	{offClockFirst + 16, 8}, {offClockLast, 8}, {offClockLast + 8, 8}, {offClockVersion, 4}, {offSeq, 8},
	{offRingsUsed, 4}, {offIndexUsed, 4}, {offDataUsed, 8}, {offFreeSegments, 8},
	{offSegmentsUsed, 4}, {offSegmentsFree, 4}, {offLostNoRing, 8}, {offLostDict, 8}, {offLostNested, 8},
	{offLostThreads, 8}, {offControl, 4}, {offDrainWake, 4}, {offDrainState, 4}, {offDrainedSeq, 8}, {offExitStatus, 4},
}

// newFaultySpool puts one or two faults into a recording, none if nothing was chosen.
func newFaultySpool(whole files, c *faults.Choices) *faultySpool {
	d := &faultySpool{files: whole, Choices: c, whole: whole.spool, touched: map[uint64]bool{}}
	d.spool = bytes.Clone(whole.spool)
	if len(*c) == 0 {
		return d
	}
	for n := 1 + c.IntN(4)/3; n > 0 && len(d.spool) >= pageSize+ringSize; n-- {
		d.once()
	}
	if len(d.trace) > 0 && c.IntN(4) == 3 {
		var how string
		d.trace, how = c.Bytes(d.trace)
		d.how += " trace:" + how
		d.silent = true // the two contradict each other
	}
	return d
}

// put writes a number that is likely to hurt, of 4 or 8 bytes.
func (d *faultySpool) put(at uint64, width int) {
	g := geometryOf(d.whole)
	values := []uint64{d.Word(len(d.spool)), g.ringsAt, g.indexAt, g.dataAt, g.segmentAt,
		uint64(g.segments), uint64(g.rings), uint64(d.IntN(8)), uint64(g.entries)}
	d.fill(at, width, values[d.IntN(len(values))])
}

func (d *faultySpool) fill(at uint64, width int, value uint64) {
	if length := uint64(len(d.spool)); at > length || length-at < uint64(width) {
		return
	}
	if width == 4 {
		binary.LittleEndian.PutUint32(d.spool[at:], uint32(value))
	} else {
		binary.LittleEndian.PutUint64(d.spool[at:], value)
	}
	d.how += fmt.Sprintf(" %#x@%d", value, at)
}

// once damages the spool in one place. Places are those of the seed, whatever the damaged header holds.
func (d *faultySpool) once() {
	g := geometryOf(d.whole)
	segment := func() uint64 { return g.segmentAt + uint64(d.IntN(int(g.segments)))*segmentSize }
	ring := func() uint64 { return g.ringsAt + uint64(d.IntN(int(g.rings)))*ringSize }
	switch d.IntN(11) {
	case 0:
		d.how += " header"
		word := headerWords[d.IntN(len(headerWords))]
		d.put(uint64(word.at), word.width)
	case 1:
		d.how += " ring"
		d.put(ring()+uint64(d.IntN(ringSize/4))*4, 4<<d.IntN(2))
	case 2: // loops, links across rings, and to nowhere
		d.how += " link"
		d.fill(segment()+segmentNext, 4, uint64(d.IntN(int(g.segments)+2)))
	case 3: // two rings in one segment, or in the same one from different slots
		d.how += " begin"
		field := []uint64{ringFirstSegment, ringReadSegment, ringReadSlot}[d.IntN(3)]
		d.fill(ring()+field, 4, uint64(d.IntN(int(g.segments)+2)))
	case 4:
		d.how += " index"
		d.put(g.indexAt+uint64(d.IntN(int(g.entries)))*indexEntrySize+uint64(d.IntN(4))*4, 4<<d.IntN(2))
	case 5:
		d.how += " data"
		d.put(g.dataAt+uint64(d.IntN(int(g.dataMax))), 4<<d.IntN(2))
	case 6, 7:
		d.record(segment() + uint64(1+d.IntN(segmentSlots-1))*recordSize)
	case 8:
		at := uint64(d.IntN(len(d.spool)))
		if d.IntN(2) == 0 {
			at = []uint64{g.ringsAt, g.indexAt, g.dataAt, segment(), segment() + recordSize*
				uint64(d.IntN(segmentSlots))}[d.IntN(5)]
		}
		d.how += fmt.Sprintf(" cut@%d", at)
		d.spool = d.spool[:min(at, uint64(len(d.spool)))]
	case 9: // a page that never came to the disk
		at := d.IntN(len(d.spool)/pageSize) * pageSize
		d.silent = d.silent || at == 0
		d.how += fmt.Sprintf(" hole@%d", at)
		clear(d.spool[at:min(at+pageSize<<d.IntN(3), len(d.spool))])
	case 10:
		d.how += " free list"
		d.fill(offFreeSegments, 8, uint64(d.IntN(int(g.segments)+2)))
		d.fill(segment()+segmentFreeNext, 4, uint64(d.IntN(int(g.segments)+2)))
	}
}

// record damages a record: its number, or anything in it.
func (d *faultySpool) record(at uint64) {
	if length := uint64(len(d.spool)); at > length || length-at < recordSize {
		return
	}
	d.how += " record"
	number := binary.LittleEndian.Uint64(d.whole[at:])
	d.touched[number] = true
	if d.IntN(2) == 0 {
		near := []uint64{0, number, number + 1, number - 1, 1, 2 * number, 1 << 63, 1<<64 - 1}
		d.fill(at+recSeq, 8, near[d.IntN(len(near))])
		return
	}
	d.put(at+8+uint64(d.IntN((recordSize-8)/4))*4, 4)
}

// compare requires every event of the seed whose record is undamaged, or a report that some are missing.
func (d *faultySpool) compare(t *testing.T, want, got *recording) {
	t.Helper()
	if d.silent || got.says() != want.says() {
		return
	}
	for number, was := range want.events {
		is, there := got.events[number]
		if d.touched[number] {
			continue
		}
		// Times hang on the clock of the header, threads on the rings; late ones are those that follow damage.
		is.Time, is.Thread, is.Flags = was.Time, was.Thread, was.Flags
		if !there || is != was {
			t.Fatalf("%s: event %d was %+v and is %+v (%v), and nothing tells: %s", d.how, number, was, is, there,
				got.says())
		}
	}
	for number := range got.events {
		if _, there := want.events[number]; !there && len(d.touched) == 0 {
			t.Fatalf("%s: event %d was not there, and nothing tells: %s", d.how, number, got.says())
		}
	}
}
