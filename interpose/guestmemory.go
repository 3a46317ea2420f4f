package main

import (
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"strconv"

	"memtrace/internal/render/layout"
	"memtrace/trace"
)

// guestMemory is how many bytes the replay may take in the traced process: MEMTRACE_GUEST_MEMORY. Five eighths are for
// the tables of live blocks, which are outside Go's heap; a quarter is for what is live in that heap, the dictionary
// above all; the rest is for what awaits the garbage collector.
type guestMemory int64

// parseGuestMemory parses what C passes on; empty means none.
func parseGuestMemory(text string) guestMemory {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return guestMemory(n)
}

func (m guestMemory) tables() int64 { return int64(m) / 8 * 5 }
func (m guestMemory) live() int64   { return int64(m) / 4 }

// thinning is for the tables of live blocks of a thinning.
func (m guestMemory) thinning() int64 { return max(int64(m)/8, 16<<20) }

// minHeap is the heap below which collecting garbage more often is not worth it.
const minHeap = 64 << 20

// limitHeap makes the garbage collector work harder where the heap grows large. While it is small it works seldom,
// beside the program.
func (m guestMemory) limitHeap() {
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(max(m.live(), minHeap))
}

// boundOOM abandons the replay when it exceeds its memory limit.
func (d *drainer) boundOOM(t *oomReporter) error {
	blocks, short := t.watch.Short()
	if !short && liveHeap() <= max(t.memory.live(), minHeap/2) {
		return nil
	}
	t.watch.Close()
	d.oom = nil
	why := fmt.Sprintf("at %s live blocks, for which %s (MEMTRACE_GUEST_MEMORY) are not enough",
		layout.Count(uint64(blocks)), layout.Bytes(uint64(t.memory)))
	d.log.Info().Msg("no more texts about running out of memory: the table of live memory was given up " + why +
		"; `memtrace report --at oom` still works")
	t = nil
	debug.FreeOSMemory()
	return d.writer.WriteInfo(trace.Info{trace.OOMReplayKey: "given up " + why})
}

// liveHeap returns what was live in Go's heap when garbage was collected last, in bytes.
func liveHeap() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(sample[0].Value.Uint64())
}
