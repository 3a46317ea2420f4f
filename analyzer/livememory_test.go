package analyzer

import (
	"runtime"
	"testing"

	"memtrace/cuda"
	"memtrace/internal/offheap"
	"memtrace/internal/profile"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// hoardEvents are allocations of a level that nobody frees, from a few places.
func hoardEvents(level cuda.Level, n int) []trace.Event {
	events := make([]trace.Event, n)
	for i := range events {
		e := &events[i]
		*e = trace.Event{Kind: trace.EventAlloc, Seq: uint64(i + 1), Time: int64(i) * 1000, Level: level,
			Mem: cuda.MemoryDevice, Addr: 0x7f0000000000 + uint64(i)*512, Size: 512, Thread: 1, API: 64,
			Stack: trace.StackID(1 + i%100)}
		if level == cuda.LevelFramework {
			e.Allocated, e.Reserved, e.Rest = uint64(i+1)*512, 1<<40, 1+uint64(i%3)
		} else {
			e.Handle = 0x1000
		}
	}
	return events
}

// heldBy returns how many bytes stay in memory once a hoard was replayed.
func heldBy(t *testing.T, level cuda.Level, n int, o Options) int64 {
	t.Helper()
	events := hoardEvents(level, n)
	o.Ahead, o.Symbols = &memorySource{events: events}, symbol.Options{NoFiles: true}
	src := &memorySource{events: events}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	outside := offheap.Bytes()
	p, err := Replay(src, o)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	held := offheap.Bytes() - outside + int64(after.HeapAlloc) - int64(before.HeapAlloc)
	if _, err := p.Report(o.Question); err != nil {
		t.Error(err)
	}
	if p.Close(); offheap.Bytes() != outside {
		t.Errorf("%d bytes are left when the profile is closed", offheap.Bytes()-outside)
	}
	return held
}

// A trace with five million live blocks took 730 bytes of the reader's memory for each. The bound is a hundred for
// everything that a process takes, see TestReaderOfManyLiveBlocks of internal/hostile: 32 for the block, 8 for its
// time, 5 to 9 for its address, 16 for its origin, 8 for its owner, 8 for the iteration and 8 for the history leave
// room for what is not live. There are more blocks than kept changes of an iteration, which take their room once.
func TestLiveBlockIsSmall(t *testing.T) {
	const n, most = 600_000, 90
	o := Options{Training: true, RuleSets: []profile.RuleGrouping{{Name: "category", Rules: madeSet(t)}},
		HistoryBlocks: 1000}
	for _, level := range []cuda.Level{cuda.LevelFramework, cuda.LevelDriver} {
		if testing.Short() && level == cuda.LevelDriver {
			continue
		}
		few, many := heldBy(t, level, n, o), heldBy(t, level, 2*n, o)
		each := float64(many-few) / n
		if each > most {
			t.Errorf("%v: %.1f bytes for a live block, more than %d", level, each, most)
		}
		t.Logf("%v: %.1f bytes for a live block", level, each)
	}
}
