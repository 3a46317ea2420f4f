package analyzer

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/profile"
	"memtrace/internal/rewrite"
	"memtrace/trace"
)

// traceOf writes events into a trace, in blocks of random sizes.
func traceOf(t *testing.T, events []trace.Event, rng *rand.Rand) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := trace.NewWriter(&file, trace.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for len(events) > 0 {
		n := min(1+rng.IntN(400), len(events))
		if err := w.WriteEvents(events[:n]); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(0); err != nil {
			t.Fatal(err)
		}
		events = events[n:]
	}
	if err := w.Close(trace.End{Reason: "exit"}); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// thinned returns a thinned copy, whole from an offset on.
func thinned(t *testing.T, file []byte, o rewrite.CopyOptions) ([]byte, trace.Thinned) {
	t.Helper()
	var out bytes.Buffer
	w, err := trace.NewWriter(&out, trace.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	c, err := rewrite.NewCopier(w, r, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	if err := c.Finish(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), c.Thinned()
}

func summaryOf(t *testing.T, file []byte, opts Options) *report.Summary {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	fillTables(r.Tables())
	s, err := Summarize(r, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A thinned trace says the same of the peaks, of who held memory then, of the end, and of how much was allocated in
// all, however often it is thinned. Nothing counts as lost.
func TestThinnedTraceKeepsPeaks(t *testing.T) {
	smaller, count := 0, randomStreams()
	for seed := range uint64(count) {
		rng := rand.New(rand.NewPCG(seed, 77))
		shape := streamShape{events: 200 + rng.IntN(3000), wild: rng.IntN(2) == 0, noHandles: rng.IntN(2) == 0}
		if rng.IntN(3) == 0 {
			shape.delayed = func(trace.Event) bool { return true }
		}
		whole := traceOf(t, randomStream(seed, shape), rng)
		opts := Options{Question: Question{Groupings: profile.GroupingNames()}}
		want := summaryOf(t, whole, opts)
		file := whole
		for range 1 + rng.IntN(3) {
			file, _ = thinned(t, file, rewrite.CopyOptions{WholeFrom: rng.Int64N(int64(len(file))),
				Window: 4 + rng.IntN(200)})
		}
		got := summaryOf(t, file, opts)
		if got.Health.Events < want.Health.Events {
			smaller++
		}
		if g, w := asJSON(t, keptByThinning(got)), asJSON(t, keptByThinning(want)); g != w {
			t.Fatalf("seed %d, %+v: %s", seed, shape, difference(g, w))
		}
	}
	if smaller < count/2 {
		t.Errorf("only %d of %d traces became smaller", smaller, count)
	}
}

// keptByThinning is what a thinned trace says as the whole one does.
func keptByThinning(s *report.Summary) *report.Summary {
	kept := &report.Summary{Driver: s.Driver, Framework: s.Framework, Other: s.Other, Implicit: s.Implicit,
		LostRecords: s.LostRecords, Groups: s.Groups, Marks: s.Marks}
	kept.Devices = append(kept.Devices, s.Devices...)
	withoutBounds(kept) // where records were lost, less is certain if blocks are left out
	for i := range kept.Devices {
		kept.Devices[i].ReservedBytesPeak = 0 // kept by the framework's counter, which is a random one in these streams
	}
	kept.Marks = slices.Clone(s.Marks)
	for i := range kept.Marks {
		kept.Marks[i].Count = 0 // those in between were left out
	}
	for i := range kept.Groups {
		rows := kept.Groups[i].Rows
		for j, r := range rows {
			rows[j] = report.Row{Key: r.Key, PeakBytes: r.PeakBytes, LiveBytes: r.LiveBytes}
		}
		kept.Groups[i].Rows = slices.DeleteFunc(rows, func(r report.Row) bool {
			return r.PeakBytes == 0 && r.LiveBytes == 0
		})
		slices.SortFunc(kept.Groups[i].Rows, func(x, y report.Row) int { return strings.Compare(x.Key, y.Key) })
	}
	kept.Health.SequenceGaps = s.Health.SequenceGaps
	return kept
}
