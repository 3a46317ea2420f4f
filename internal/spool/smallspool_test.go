package spool

import (
	"bytes"
	"encoding/binary"
	"testing"

	"memtrace/trace"
)

// smallSpool lays out a spool by hand: two rings, the first with two segments in a chain, one dictionary entry of each
// kind, one record of each kind.
type smallSpool struct {
	data []byte
	dict uint64 // bytes of dictionary data so far
	ids  uint32
	seq  uint64
}

const (
	seedRings, seedIndex, seedData, seedSegments = 2, 8, 1024, 3

	seedRingsAt    = pageSize
	seedIndexAt    = seedRingsAt + seedRings*ringSize
	seedDataAt     = seedIndexAt + seedIndex*indexEntrySize
	seedSegmentsAt = seedDataAt + seedData
)

func newSmallSpool() *smallSpool {
	s := &smallSpool{data: make([]byte, seedSegmentsAt+seedSegments*segmentSize)}
	copy(s.data, magic)
	for off, v := range map[int]uint32{offVersion: layoutVersion, offRecordSize: recordSize,
		offSegmentSize: segmentSize, offSegmentsMax: seedSegments,
		offRingsMax: seedRings, offIndexMax: seedIndex, offPID: 1 << 22, offRingsUsed: seedRings,
		offSegmentsUsed: seedSegments} {
		s.put32(off, v)
	}
	for off, v := range map[int]uint64{offRingsOffset: seedRingsAt, offIndexOffset: seedIndexAt,
		offDataOffset: seedDataAt, offDataMax: seedData,
		offSegmentsOffset: seedSegmentsAt, offFileSize: uint64(len(s.data)), offClockFirst: 1000, offClockFirst + 8: 1,
		offClockLast: 5000, offClockLast + 8: 2001} {
		s.put64(off, v)
	}
	s.put32(offClockIsTSC, 1)
	for i := range seedRings {
		ring := seedRingsAt + i*ringSize
		s.put32(ring+ringState, ringActive)
		s.put32(ring+ringThread, uint32(i+1))
		s.put32(ring+ringFirstSegment, uint32(2*i+1))
	}
	s.put32(seedSegmentsAt+segmentNext, 2)
	return s
}

func (s *smallSpool) put32(off int, v uint32) { binary.LittleEndian.PutUint32(s.data[off:], v) }
func (s *smallSpool) put64(off int, v uint64) { binary.LittleEndian.PutUint64(s.data[off:], v) }

func (s *smallSpool) entry(kind uint32, b []byte) {
	at := seedIndexAt + int(s.ids)*indexEntrySize
	s.put32(at, kind)
	s.put32(at+4, uint32(len(b)))
	s.put64(at+8, s.dict)
	copy(s.data[seedDataAt+s.dict:], b)
	s.dict += uint64(len(b)+7) &^ 7
	s.ids++
	s.put32(offIndexUsed, s.ids)
}

// record fills a slot (1..255) of a segment (1..3).
func (s *smallSpool) record(segment, slot int, kind trace.EventKind, api uint16, addr, size uint64) {
	s.seq++
	at := seedSegmentsAt + (segment-1)*segmentSize + slot*recordSize
	s.put64(at+recSeq, s.seq)
	s.put64(at+recTicks, 1000+s.seq*10)
	s.put64(at+recAddr, addr)
	s.put64(at+recSize, size)
	s.put32(at+recStack, 3)
	s.put32(at+recTag, 1)
	binary.LittleEndian.PutUint16(s.data[at+recAPI:], api)
	s.data[at+recKind] = byte(kind)
	s.put64(offSeq, s.seq)
}

// whole is a spool as a short run leaves it.
func whole() *smallSpool {
	s := newSmallSpool()
	s.entry(dictString, []byte("model.layer"))
	s.entry(dictThread, append([]byte{7, 0, 0, 0}, "python"...))
	s.entry(dictStack, append([]byte{byte(trace.StackDepth), 7: 0}, make([]byte, 24)...))
	module := make([]byte, 48)
	binary.LittleEndian.PutUint64(module[8:], 1<<20)
	module[24], module[32], module[40], module[44] = 9, 8, 4, 5
	s.entry(dictModule, append(module, "\x01\x02\x03\x04libc."...))
	device := make([]byte, 32)
	device[4] = 8
	s.entry(dictDevice, append(device, "Null GPU"...))
	s.entry(dictInfo, []byte("process.argv\x00train\x00--fast\x00"))
	s.entry(dictCode, codeEntry(1, "f", 2, "A.f", 1, "/a.py", 10))
	s.entry(dictPyStack, pyStackEntry(trace.StackUnreadable, trace.PyFrame{Code: 7, Offset: 34, Entry: true,
		Self: 1 << 40}, trace.PyFrame{Code: 7, Offset: 8}))
	for slot := 1; slot < segmentSlots; slot++ {
		s.record(1, slot, trace.EventAlloc, 64, uint64(slot)<<20, 512)
	}
	s.record(3, 1, trace.EventAlloc, 32, 1<<40, 2<<20)
	s.record(2, 1, trace.EventFree, 64, 1<<20, 512)
	s.record(2, 2, trace.EventMark, 0, 0, 0)
	s.record(3, 2, trace.EventMap, 49, 2<<40, 2<<20)
	s.record(2, 3, trace.EventStep, 0, 0, 7)
	s.record(2, 4, trace.EventOOM, 66, 0, 1<<30)
	return s
}

// damaged lists what a hostile file does: chains that bite their tail, two rings in one segment, counts far beyond the
// file, numbers that were never drawn.
func damaged() [][]byte {
	change := func(f func(*smallSpool)) []byte {
		s := whole()
		f(s)
		return s.data
	}
	return [][]byte{
		change(func(s *smallSpool) { s.put32(seedSegmentsAt+segmentSize+segmentNext, 1); fill(s, 2) }),
		change(func(s *smallSpool) { s.put32(seedRingsAt+ringSize+ringFirstSegment, 1) }),
		change(func(s *smallSpool) {
			s.put32(offRingsMax, 1<<31)
			s.put32(offRingsUsed, 1<<31)
			s.put64(offIndexOffset, seedIndexAt+1<<38)
			s.put64(offDataOffset, seedIndexAt+1<<39)
			s.put64(offSegmentsOffset, seedIndexAt+1<<39+512)
		}),
		change(func(s *smallSpool) {
			s.put32(offIndexMax, 1<<31)
			s.put32(offIndexUsed, 1<<31)
			s.put64(offDataOffset, seedIndexAt+1<<38)
			s.put64(offSegmentsOffset, seedIndexAt+1<<39)
		}),
		change(func(s *smallSpool) { // the same, and the records are of a kind that only a drainer writes
			s.put32(seedRingsAt+ringSize+ringFirstSegment, 1)
			for slot := 1; slot < segmentSlots; slot++ {
				s.data[seedSegmentsAt+slot*recordSize+recKind] = byte(trace.EventLost)
			}
		}),
		change(func(s *smallSpool) { // texts and a line table of which the entry has nothing
			s.entry(dictCode, bytes.Repeat([]byte{255}, codeSize+9))
			s.put32(offIndexUsed, 8)
			copy(s.data[seedDataAt:], bytes.Repeat([]byte{255}, int(s.dict)))
		}),
		change(func(s *smallSpool) { s.put64(offSeq, 0) }),
		change(func(s *smallSpool) { s.put64(offSeq, 1<<64-1); s.put64(offDrainedSeq, 1<<64-1) }),
		change(func(s *smallSpool) { s.put64(seedRingsAt+ringInflight, 5) }),
		// after a record that has to wait, a number that comes twice, in a chain that bites its tail
		change(func(s *smallSpool) {
			fill(s, 3)
			for slot, seq := range map[int]uint64{1: 1 << 20, 2: 5, 3: 5} {
				s.put64(seedSegmentsAt+2*segmentSize+slot*recordSize+recSeq, seq)
			}
			s.put32(seedSegmentsAt+2*segmentSize+segmentNext, 3)
			s.put64(offSeq, 1<<21)
		}),
		change(func(s *smallSpool) { // records are missing between two that are there
			s.put64(seedRingsAt+ringLostOthers, 3)
			s.put64(seedRingsAt+ringLostFrom, 5)
		}),
		change(func(s *smallSpool) { s.put32(offClockVersion, 1); s.put64(offClockLast, 1) }),
		change(func(s *smallSpool) {
			s.put32(seedRingsAt+ringReadSegment, 3)
			s.put32(seedRingsAt+ringReadSlot, 1<<31)
		}),
		change(func(s *smallSpool) {
			for i := range 4 { // entries that share their bytes
				s.put32(seedIndexAt+i*indexEntrySize, dictString)
				s.put32(seedIndexAt+i*indexEntrySize+4, seedData)
				s.put64(seedIndexAt+i*indexEntrySize+8, 0)
			}
		}),
	}
}

func fill(s *smallSpool, segment int) {
	for slot := 1; slot < segmentSlots; slot++ {
		s.record(segment, slot, trace.EventAlloc, 64, uint64(slot)<<30, 512)
	}
}

// A whole spool returns all its events in order; the seeds of the fuzzer are worth something only if this holds.
func TestSmallSpool(t *testing.T) {
	s := whole()
	run, err := OpenRun(writeSpool(t, s) + Extension)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	events, tables := readRest(t, run), run.Tables()
	if uint64(len(events)) != s.seq {
		t.Fatalf("%d events of %d", len(events), s.seq)
	}
	for i, e := range events {
		if e.Seq != uint64(i+1) {
			t.Fatalf("event %d has number %d", i, e.Seq)
		}
	}
	checkSmallPython(t, tables)
	if tables.StackEnd(3) != trace.StackDepth || tables.Modules()[0].Size != 9 || tables.Modules()[0].ModTime != 8 {
		t.Errorf("stack ends %v, module %+v", tables.StackEnd(3), tables.Modules()[0])
	}
	if len(tables.Stack(3)) != 3 || tables.String(1) != "model.layer" || len(tables.Modules()) != 1 ||
		len(tables.Devices()) != 1 || len(tables.Threads()) != 1 {
		t.Errorf("dictionary: stack %v, string %q, %d modules, %d devices, %d threads", tables.Stack(3),
			tables.String(1), len(tables.Modules()), len(tables.Devices()), len(tables.Threads()))
	}
}
