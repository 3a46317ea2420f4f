package tables

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"memtrace/analyzer"
	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// trainingTrace is a trace of steps of 545 blocks each, which are freed in another order, with so many events in all.
func trainingTrace(t testing.TB, events int) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := trace.NewWriter(&file, trace.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const blocks = 545
	const device, parameters = 0x7f0000000000, 0x7e0000000000
	rng := rand.New(rand.NewPCG(1, 2))
	order := rng.Perm(blocks)
	var batch []trace.Event
	var seq, live uint64
	var now int64
	add := func(kind trace.EventKind, level cuda.Level, addr, size uint64, stack int) {
		seq++
		now += int64(2000 + rng.IntN(18000))
		if kind == trace.EventAlloc {
			live += size
		} else {
			live -= size
		}
		batch = append(batch, trace.Event{Kind: kind, Seq: seq, Time: now, Level: level, Mem: cuda.MemoryDevice,
			Thread: trace.ThreadID(1 + stack%2), Addr: addr, Size: size, Stack: trace.StackID(1 + stack),
			Allocated: live, Reserved: 8 << 30})
	}
	for i := range 500 {
		add(trace.EventAlloc, cuda.LevelFramework, parameters+uint64(i)<<28, 4<<20, i%97)
	}
	for int(seq) < events {
		for i := range blocks {
			add(trace.EventAlloc, cuda.LevelFramework, device+uint64(i)<<24, 512<<(i%16), i%97)
		}
		for _, i := range order {
			add(trace.EventFree, cuda.LevelFramework, device+uint64(i)<<24, 512<<(i%16), i%97)
		}
	}
	for i := range 97 {
		stack := trace.Stack{ID: trace.StackID(1 + i), Frames: []uint64{0x7f1000000000 + uint64(i)<<8}}
		if err := w.WriteStack(stack); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteEvents(batch); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(trace.End{Time: now}); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// watchRows takes in every block, and does nothing with it.
type watchRows struct{ blocks int }

func (w *watchRows) Opened(uint32, *heap.Block, *trace.Event) { w.blocks++ }
func (w *watchRows) Closed(uint32, *heap.Block, *trace.Event) {}
func (w *watchRows) Passed(*heap.Block)                       {}
func (w *watchRows) Event(*trace.Event)                       {}
func (w *watchRows) Moment() any                              { return nil }

// BenchmarkEvents: what writing events takes beside reading alone, which is done block by block here.
func BenchmarkEvents(b *testing.B) {
	const events = 1 << 20
	raw := trainingTrace(b, events)
	of := rank(b, 0, raw)
	question := analyzer.Options{Question: analyzer.Question{Groupings: []string{"tag"}}}
	measure := func(name string, once func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			began := processorTime(b)
			for b.Loop() {
				once(b)
			}
			b.ReportMetric(float64(b.N)*events/1e6/(processorTime(b)-began).Seconds(), "Mevents/core-s")
		})
	}
	measure("report", func(b *testing.B) {
		if _, err := analyzer.Summarize(open(b, raw), question); err != nil {
			b.Fatal(err)
		}
	})
	measure("read", func(b *testing.B) {
		f, err := analyzer.Follow(open(b, raw), question, &watchRows{})
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	})
	for _, names := range [][]string{{"events"}, {"blocks"}, {"events", "blocks"}} {
		measure(strings.Join(names, "+"), func(b *testing.B) {
			w := discarding(names)
			follow(b, w, of, raw)
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// processorTime is what the process took of all processors, in which other processes' work hardly counts.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// discarding is a Writer of some tables, whose files are not kept.
func discarding(names []string) *Writer {
	var list []Table
	var outs []io.Writer
	for _, name := range names {
		list, outs = append(list, *Find(name)), append(outs, io.Discard)
	}
	return NewWriter("test", list, outs)
}
