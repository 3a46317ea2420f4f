package spool

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"memtrace/trace"
)

const benchEvents = 1 << 20

// longTrace writes a trace of benchEvents allocations and frees, without an end, in flushes as long as the drainer's.
func longTrace(b *testing.B, path string) {
	b.Helper()
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	w, err := trace.NewWriter(file, trace.WriterOptions{})
	if err != nil {
		b.Fatal(err)
	}
	batch := make([]trace.Event, 512)
	for first := uint64(1); first <= benchEvents; first += uint64(len(batch)) {
		for i := range batch {
			seq := first + uint64(i)
			batch[i] = trace.Event{Kind: trace.EventAlloc, Seq: seq, Time: int64(seq) * 1000, Addr: seq / 2 << 9,
				Size: 512 + seq%64<<9, Level: 1, API: 1, Mem: 1, Thread: 1}
			if seq%2 == 1 {
				batch[i].Kind = trace.EventFree
			}
		}
		if err := w.WriteEvents(batch); err != nil {
			b.Fatal(err)
		}
		if end := first + uint64(len(batch)); end%(16<<10) == 1 {
			if err := w.Flush(end); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := w.Flush(benchEvents + 1); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRun reads a long trace as report does: alone, and beside the spool of a process that was killed.
func BenchmarkRun(b *testing.B) {
	for _, name := range []string{"alone", "spool"} {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "t.bin")
			longTrace(b, path)
			if name == "spool" {
				if err := os.WriteFile(path+Extension, whole().data, 0o600); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if n := readRun(b, path); n != benchEvents {
					b.Fatalf("%d events of %d", n, benchEvents)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchEvents, "ns/event")
		})
	}
}

func readRun(b *testing.B, path string) int {
	b.Helper()
	run, err := OpenRun(path)
	if err != nil {
		b.Fatal(err)
	}
	defer run.Close()
	for n := 0; ; {
		events, err := run.ReadBatch()
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			b.Fatal(err)
		}
		n += len(events)
	}
}
