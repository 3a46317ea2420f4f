package trace

import (
	"bytes"
	"io"
	"testing"
)

const benchEvents = 1 << 20

type countingWriter struct{ n int64 }

func (c *countingWriter) Write(b []byte) (int, error) { c.n += int64(len(b)); return len(b), nil }

// BenchmarkWrite encodes a training stream in batches of 512, as the drainer does, with a flush for every 16 Ki events.
func BenchmarkWrite(b *testing.B) {
	events := trainingStream(benchEvents, 1)
	b.ReportAllocs()
	b.ResetTimer()
	var out countingWriter
	for range b.N {
		out.n = 0
		w, err := NewWriter(&out, WriterOptions{})
		if err != nil {
			b.Fatal(err)
		}
		for i := 0; i < len(events); i += 512 {
			if err := w.WriteEvents(events[i : i+512]); err != nil {
				b.Fatal(err)
			}
			if i%(16<<10) == 0 {
				if err := w.Flush(0); err != nil {
					b.Fatal(err)
				}
			}
		}
		if err := w.Close(End{}); err != nil {
			b.Fatal(err)
		}
	}
	perEvent(b, len(events), out.n)
}

// BenchmarkRead decodes the same stream.
func BenchmarkRead(b *testing.B) {
	file := encodeTrace(b, trainingStream(benchEvents, 1), MaxBlockEvents)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		r, err := NewReader(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for {
			batch, err := r.ReadBatch()
			if err == io.EOF {
				break
			}
			n += len(batch)
		}
		if n != benchEvents {
			b.Fatalf("%d events, want %d", n, benchEvents)
		}
	}
	perEvent(b, benchEvents, int64(len(file)))
}

func perEvent(b *testing.B, events int, bytes int64) {
	b.ReportMetric(float64(bytes)/float64(events), "B/event")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
	b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
}
