package oom

import (
	"testing"

	"memtrace/cuda"
	"memtrace/internal/offheap"
	"memtrace/trace"
)

// A live block took 240 bytes of the program's memory, most of them in Go's heap. What counts is every moment, also
// that in which a table is moved to twice the room.
func TestPackedBlockIsSmall(t *testing.T) {
	const blocks, most = 1_200_000, 48
	malloc, _ := cuda.ParseAPI("cuMemAlloc_v2")
	before, worst, slots := offheap.Bytes(), 0.0, 0
	w := NewWatch(&trace.Tables{}, trace.Info{}, 1<<40)
	events := make([]trace.Event, 1000)
	for n := uint64(0); n < blocks; n += uint64(len(events)) {
		for i := range events {
			k := n + uint64(i)
			events[i] = trace.Event{Kind: trace.EventAlloc, Seq: k + 1, Level: cuda.LevelDriver, Mem: cuda.MemoryDevice,
				API: malloc, Addr: 0x7f0000000000 + k*512, Size: 512, Thread: 1, Handle: 0x1000,
				Stack: trace.StackID(1 + k%100)}
		}
		w.Apply(events)
		moved := 0
		if now := w.replay.heap.Room(); now != slots {
			moved, slots = 4*slots, now // both were there for a moment
		}
		if n > blocks/2 { // parts come by the MiB, and the table doubles once after that
			worst = max(worst, float64(offheap.Bytes()-before+int64(moved))/float64(n+uint64(len(events))))
		}
	}
	if worst > most {
		t.Errorf("%.1f bytes for a live block", worst)
	}
	if n, short := w.Short(); n != blocks || short {
		t.Errorf("%d blocks, short %v", n, short)
	}
	t.Logf("%.1f bytes for a live block at most", worst)
	if w.Close(); offheap.Bytes() != before {
		t.Errorf("%d bytes are left when it is closed", offheap.Bytes()-before)
	}
}

// Out of room, a watch goes on to be right until it is given up.
func TestWatchShortOfRoom(t *testing.T) {
	const most = 4 << 20
	w := NewWatch(&trace.Tables{}, trace.Info{}, offheap.Bytes()+most)
	short := 0
	var events []trace.Event
	for k := range uint64(300_000) {
		events = append(events[:0], trace.Event{Kind: trace.EventAlloc, Seq: k + 1, Level: cuda.LevelFramework,
			Mem: cuda.MemoryDevice, API: 64, Addr: 0x7f0000000000 + k*512, Size: 512, Thread: 1})
		w.Apply(events)
		if n, is := w.Short(); n != int(k)+1 || is != (short > 0 || is) {
			t.Fatalf("%d blocks of %d, short %v", n, k+1, is)
		} else if is && short == 0 {
			short = n
		}
	}
	if short < most/48 || short > most/32 {
		t.Errorf("short of room with %d blocks in %d bytes", short, most)
	}
	if got := w.replay.devices.Holdings.Device(1).Blocks; got != 300_000*512 {
		t.Errorf("%d bytes are live", got)
	}
	w.Close()
}

// What stacks are called is looked up when memory runs out, and forgotten again: a program that is short of memory
// needs it.
func TestWatchForgetsNames(t *testing.T) {
	tables := &trace.Tables{}
	tables.AddCode(trace.Code{ID: 1, Name: "main", QualName: "main", File: "/home/ada/train.py", FirstLine: 1})
	tables.AddPyStack(trace.PyStack{ID: 1, Frames: []trace.PyFrame{{Code: 1}}, End: trace.StackWhole})
	w := NewWatch(tables, trace.Info{"process.cwd": "/home/ada"}, 1<<40)
	defer w.Close()
	block := trace.Event{Kind: trace.EventAlloc, Seq: 1, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice,
		Addr: 0x7f0000000000, Size: 512, Thread: 1, PyStack: 1}
	refusal := trace.Event{Kind: trace.EventAlloc, Seq: 2, Level: cuda.LevelDriver, Mem: cuda.MemoryDevice,
		Size: 1 << 40, Status: StatusOutOfMemory, Thread: 1, PyStack: 1}
	w.Apply([]trace.Event{block, refusal})
	w.Finish()
	reported := w.Take()
	if len(reported) != 1 || reported[0].Event.Ledger("site") == nil ||
		reported[0].Event.Ledger("site").Rows[0].Key != "train.py:1 main" {
		t.Fatalf("told %+v", reported)
	}
	if s := w.replay.resolver.Stacks; s.Names != nil || s.Stacks != nil {
		t.Error("names are kept in the program")
	}
}

// A failure is told once the library has looked for what keeps tensors alive, whatever ends it meanwhile. What was
// found is said of the first one.
func TestWatchWaitsForSearch(t *testing.T) {
	const found = "oom\t5\t0\n1\t0\t0\t512\t9\n" +
		"512\t1\t0\t0\t0\t0\tuint8\t512\tcuda:0\t__main__.kept\tmodule, Tensor\t1000\n"
	info := trace.Info{trace.ReferrersBegunKey: "1"}
	w := NewWatch(&trace.Tables{}, info, 1<<40)
	defer w.Close()
	fail := func(seq uint64) {
		w.Apply([]trace.Event{{Kind: trace.EventOOM, Seq: seq, Time: int64(seq) * 1e9, Level: cuda.LevelFramework,
			Mem: cuda.MemoryDevice, API: 64, Size: 1 << 30, Thread: 1, Allocated: 512}})
		w.Finish()
	}
	fail(1)
	if list := w.Take(); list != nil || !w.Pending() {
		t.Errorf("told before the search was over: %+v", list)
	}
	info[trace.ReferrersKey] = found
	fail(2)
	list := w.Take()
	if len(list) != 2 || w.Pending() || list[0].KeptBy == nil || len(list[0].KeptBy.Holders) != 1 ||
		list[0].KeptBy.Holders[0].Path != "__main__.kept" || list[1].KeptBy != nil {
		t.Errorf("%+v", list)
	}
}

// A process that ends while it is searched has its failure told.
func TestWatchEndsAmidSearch(t *testing.T) {
	w := NewWatch(&trace.Tables{}, trace.Info{trace.ReferrersBegunKey: "1"}, 1<<40)
	defer w.Close()
	w.Apply([]trace.Event{{Kind: trace.EventOOM, Seq: 1, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, API: 64,
		Size: 1 << 30, Thread: 1}})
	w.End()
	if list := w.Take(); len(list) != 1 || list[0].KeptBy != nil {
		t.Errorf("%+v", list)
	}
}
