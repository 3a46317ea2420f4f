package spool

import (
	"testing"

	"memtrace/trace"
)

// A framework's record keeps the operator in the upper bits of two counts; none of the three may spill into another.
func TestOperatorOfRecord(t *testing.T) {
	const usage = 64 // MT_REPORT of an allocator's usage
	for _, test := range []struct {
		about               string
		allocated, reserved uint64 // as the record has them
		want                trace.Event
	}{
		{"none", 512, 2 << 20, trace.Event{Allocated: 512, Reserved: 2 << 20}},
		{"number", 1<<44 | 512, 2 << 20, trace.Event{Allocated: 512, Reserved: 2 << 20, Op: 1}},
		{"number in both halves", 0xabcde<<44 | 512, 0x2b<<44 | 2<<20, trace.Event{Allocated: 512, Reserved: 2 << 20,
			Op: 0x2babcde}},
		{"thread", 1<<44 | 512, 1<<50 | 2<<20, trace.Event{Allocated: 512, Reserved: 2 << 20, Op: 1, OpThread: 1}},
		{"backward", 1<<44 | 512, 1<<63 | 2<<20, trace.Event{Allocated: 512, Reserved: 2 << 20, Op: 1,
			Flags: trace.FlagBackward}},
		{"counts at their limit", 1<<44 - 1, 1<<44 - 1, trace.Event{Allocated: 1<<44 - 1, Reserved: 1<<44 - 1}},
		{"all bits", 1<<64 - 1, 1<<64 - 1,
			trace.Event{Allocated: 1<<44 - 1, Reserved: 1<<44 - 1, Op: 1<<26 - 1, OpThread: 1<<13 - 1,
				Flags: trace.FlagBackward}},
	} {
		s := newSmallSpool()
		s.record(1, 1, trace.EventAlloc, usage, 1<<20, 512)
		at := seedSegmentsAt + recordSize
		s.put64(at+recUnion, test.allocated)
		s.put64(at+recReserved, test.reserved)
		var e trace.Event
		(&Spool{data: s.data}).decode(&e, uint64(at), &clock{rate: 1})
		got := trace.Event{Allocated: e.Allocated, Reserved: e.Reserved, Op: e.Op, OpThread: e.OpThread, Flags: e.Flags}
		if got != test.want {
			t.Errorf("%s: %+v, want %+v", test.about, got, test.want)
		}
	}
}

// A refused size may be any: nothing shares its word.
func TestRefusedSizeOfRecord(t *testing.T) {
	const gaveUp = 65
	for _, size := range []uint64{512, 1 << 44, 1 << 58, 1<<64 - 1} {
		s := newSmallSpool()
		s.record(1, 1, trace.EventOOM, gaveUp, 0, size)
		var e trace.Event
		(&Spool{data: s.data}).decode(&e, seedSegmentsAt+recordSize, &clock{rate: 1})
		if e.Size != size || e.Rest != 0 || e.Tag != 1 {
			t.Errorf("%d bytes: %+v", size, e)
		}
	}
}

// So does what a block has beyond the request, in the upper bits of its size and its tag.
func TestRestOfRecord(t *testing.T) {
	const usage = 64
	for _, test := range []struct {
		size uint64
		tag  uint32
		want trace.Event
	}{
		{512, 7, trace.Event{Size: 512, Tag: 7}},
		{13<<44 | 512, 7, trace.Event{Size: 512, Tag: 7, Rest: 13}},
		{3<<44 | 2<<30, 5<<19 | 1<<18, trace.Event{Size: 2 << 30, Tag: 1 << 18, Rest: 5<<20 | 3}},
		{1<<64 - 1, 1<<32 - 1, trace.Event{Size: 1<<44 - 1, Tag: 1<<19 - 1, Rest: 1<<33 - 1}},
	} {
		s := newSmallSpool()
		s.record(1, 1, trace.EventAlloc, usage, 1<<20, 512)
		at := seedSegmentsAt + recordSize
		s.put64(at+recSize, test.size)
		s.put32(at+recTag, test.tag)
		var e trace.Event
		(&Spool{data: s.data}).decode(&e, uint64(at), &clock{rate: 1})
		if got := (trace.Event{Size: e.Size, Tag: e.Tag, Rest: e.Rest}); got != test.want {
			t.Errorf("%+v, want %+v", got, test.want)
		}
	}
}
