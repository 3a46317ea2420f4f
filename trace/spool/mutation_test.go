package spool

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"memtrace/internal/mutant"
)

// seedSpool is a recording that mutants are made of.
type seedSpool struct {
	name         string
	spool, trace []byte // trace nil: a spool alone
	want         *recording
}

func (s *seedSpool) files() map[string][]byte {
	files := map[string][]byte{Extension: s.spool}
	if s.trace != nil {
		files[""] = s.trace
	}
	return files
}

// damage is what was done to a spool, as far as it decides what must still be there.
type damage struct {
	seed    *seedSpool
	data    []byte
	touched map[uint64]bool // numbers of the records that were written to
	silent  bool            // what says how much there was is gone as well
}

// geometry is where the parts of a spool lie.
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

// mutate damages a recording in one or two places.
func (s *seedSpool) mutate(m *mutant.Mutant) *damage {
	d := &damage{seed: s, data: bytes.Clone(s.spool), touched: map[uint64]bool{}}
	m.How = s.name + ":"
	for n := 1 + m.Rand.IntN(4)/3; n > 0; n-- {
		if len(d.data) < pageSize+ringSize {
			break
		}
		d.once(m)
	}
	m.Files[Extension] = d.data
	if s.trace != nil {
		m.Files[""] = s.trace
		if m.Rand.IntN(4) == 0 {
			var how string
			m.Files[""], how = mutant.Bytes(m.Rand, s.trace)
			m.How += " trace:" + how
			d.silent = true // the two contradict each other
		}
	}
	return d
}

// put writes a number that is likely to hurt, of 4 or 8 bytes.
func (d *damage) put(m *mutant.Mutant, at uint64, width int) {
	g := geometryOf(d.seed.spool)
	values := []uint64{mutant.Word(m.Rand, len(d.data)), g.ringsAt, g.indexAt, g.dataAt, g.segmentAt,
		uint64(g.segments), uint64(g.rings), uint64(m.Rand.IntN(8)), uint64(g.entries)}
	d.write(m, at, width, values[m.Rand.IntN(len(values))])
}

func (d *damage) write(m *mutant.Mutant, at uint64, width int, value uint64) {
	if at+uint64(width) > uint64(len(d.data)) {
		return
	}
	if width == 4 {
		binary.LittleEndian.PutUint32(d.data[at:], uint32(value))
	} else {
		binary.LittleEndian.PutUint64(d.data[at:], value)
	}
	m.How += fmt.Sprintf(" %#x@%d", value, at)
}

// once damages the spool in one place. Places are those of the seed, wherever the damaged header says that they are.
func (d *damage) once(m *mutant.Mutant) {
	r, g := m.Rand, geometryOf(d.seed.spool)
	segment := func() uint64 { return g.segmentAt + uint64(r.IntN(int(g.segments)))*segmentSize }
	ring := func() uint64 { return g.ringsAt + uint64(r.IntN(int(g.rings)))*ringSize }
	switch r.IntN(11) {
	case 0:
		m.How += " header"
		word := headerWords[r.IntN(len(headerWords))]
		d.put(m, uint64(word.at), word.width)
	case 1:
		m.How += " ring"
		d.put(m, ring()+uint64(r.IntN(ringSize/4))*4, 4<<r.IntN(2))
	case 2: // loops, links across rings, and to nowhere
		m.How += " link"
		d.write(m, segment()+segmentNext, 4, uint64(r.IntN(int(g.segments)+2)))
	case 3: // two rings in one segment, or in the same one from different slots
		m.How += " begin"
		field := []uint64{ringFirstSegment, ringReadSegment, ringReadSlot}[r.IntN(3)]
		d.write(m, ring()+field, 4, uint64(r.IntN(int(g.segments)+2)))
	case 4:
		m.How += " index"
		d.put(m, g.indexAt+uint64(r.IntN(int(g.entries)))*indexEntrySize+uint64(r.IntN(4))*4, 4<<r.IntN(2))
	case 5:
		m.How += " data"
		d.put(m, g.dataAt+uint64(r.IntN(int(g.dataMax))), 4<<r.IntN(2))
	case 6, 7:
		d.record(m, segment()+uint64(1+r.IntN(segmentSlots-1))*recordSize)
	case 8:
		at := r.IntN(len(d.data))
		if r.IntN(2) == 0 {
			at = int([]uint64{g.ringsAt, g.indexAt, g.dataAt, segment(), segment() + recordSize*
				uint64(r.IntN(segmentSlots))}[r.IntN(5)])
		}
		m.How += fmt.Sprintf(" cut@%d", at)
		d.data = d.data[:min(at, len(d.data))]
	case 9: // a page that never came to the disk
		at := r.IntN(len(d.data)/pageSize) * pageSize
		d.silent = d.silent || at == 0
		m.How += fmt.Sprintf(" hole@%d", at)
		clear(d.data[at:min(at+pageSize<<r.IntN(3), len(d.data))])
	case 10:
		m.How += " free list"
		d.write(m, offFreeSegments, 8, uint64(r.IntN(int(g.segments)+2)))
		d.write(m, segment()+segmentFreeNext, 4, uint64(r.IntN(int(g.segments)+2)))
	}
}

// record damages a record: its number, or anything in it.
func (d *damage) record(m *mutant.Mutant, at uint64) {
	if at+recordSize > uint64(len(d.data)) {
		return
	}
	m.How += " record"
	number := binary.LittleEndian.Uint64(d.seed.spool[at:])
	d.touched[number] = true
	if m.Rand.IntN(2) == 0 {
		near := []uint64{0, number, number + 1, number - 1, 1, 2 * number, 1 << 63, 1<<64 - 1}
		d.write(m, at+recSeq, 8, near[m.Rand.IntN(len(near))])
		return
	}
	d.put(m, at+8+uint64(m.Rand.IntN((recordSize-8)/4))*4, 4)
}

// compare wants every event of the seed whose record nobody wrote to, or somebody to say that some are missing.
func (d *damage) compare(m *mutant.Mutant, want, got *recording) {
	if d.silent || says(got) != says(want) {
		return
	}
	for number, was := range want.events {
		is, there := got.events[number]
		if d.touched[number] {
			continue
		}
		// Times hang on the clock of the header, threads on the rings; late ones are those that come behind damage.
		is.Time, is.Thread, is.Flags = was.Time, was.Thread, was.Flags
		if !there || is != was {
			m.Faultf("event %d was %+v and is %+v (%v), and nothing tells: %s", number, was, is, there, says(got))
			return
		}
	}
	for number := range got.events {
		if _, there := want.events[number]; !there && !d.touched[number] && len(d.touched) == 0 {
			m.Faultf("event %d was not there, and nothing tells: %s", number, says(got))
			return
		}
	}
}

// says is what a recording says of what is missing in it.
func says(g *recording) string {
	h := g.health
	return fmt.Sprint(g.ended, g.lost, h.Gaps, h.InFlight, h.Truncated, h.Repeated, h.Altered, h.UnknownEvents)
}
