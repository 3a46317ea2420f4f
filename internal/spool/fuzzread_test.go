package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/contradiction"
	"memtrace/internal/render"
	"memtrace/internal/render/layout"
	"memtrace/internal/textform"
	"memtrace/trace"
)

// Summarize is analyzer.Summarize with some groupings, which summarize_test.go sets: package analyzer imports this one.
var Summarize func(src trace.Source, groupings []string) (*report.Summary, error)

// recording is what was read.
type recording struct {
	events    map[uint64]trace.Event // those of losses left out
	rewritten bool                   // numbers may come again, from other records
	accounts  int                    // of lost records
	health    trace.Health
	ended     string
	lost      [3]uint64
	summary   *report.Summary
}

// says is what a recording reports as missing.
func (g *recording) says() string {
	h := g.health
	return fmt.Sprint(g.ended, g.lost, h.Gaps, h.InFlight, h.Truncated, h.Repeated, h.Altered, h.UnknownEvents)
}

// readRecording reads as the command does, nil if the recording is refused.
func readRecording(t *testing.T, path string, p files, by int) *recording {
	t.Helper()
	got := &recording{events: map[uint64]trace.Event{}}
	before := allocated()
	run, err := OpenRun(pathOf(path))
	if err != nil {
		if !refused(err) || run != nil {
			t.Errorf("refused: %v", err)
		}
		return nil
	}
	defer run.Close()
	count := got.take(t, run, p)
	// A record of 64 bytes becomes an event of 128, a few times over while slices grow and are sorted.
	limit := 1<<20 + 64*uint64(p.size()) + 512*uint64(count)
	if len(p.trace) > 0 {
		limit += 7<<20 + 192*uint64(p.size()) + 3584*uint64(count)
	}
	if used := allocated() - before; used > limit {
		t.Errorf("%d bytes taken for %d of recording and %d events, more than %d", used, p.size(), count, limit)
	}
	got.health, got.ended = run.Health(), run.Ended()
	got.lost[0], got.lost[1], got.lost[2] = run.Lost()
	run.Tables().ModuleAt(1)
	got.summarize(t, path, by)
	return got
}

// take reads a source to its end: each number once, and no more events than fit in the files.
func (g *recording) take(t *testing.T, src trace.Source, p files) (count int) {
	t.Helper()
	for {
		batch, err := src.ReadBatch()
		if errors.Is(err, io.EOF) {
			return count
		}
		if err != nil || len(batch) == 0 {
			t.Fatalf("a batch of %d events, error %v", len(batch), err)
		}
		for i, e := range batch {
			_, twice := g.events[e.Seq]
			if e.Kind == trace.EventLost { // bears the number of the event before it
				g.accounts++
				if twice && len(p.trace) == 0 && (i == 0 || batch[i-1].Seq != e.Seq) {
					t.Errorf("an account of lost records bears number %d, which stands elsewhere", e.Seq)
				}
				continue
			}
			if twice && !g.rewritten {
				t.Errorf("event %d came twice", e.Seq)
			}
			g.events[e.Seq] = e
			count++
		}
		if most := p.events(); count > most {
			t.Fatalf("more than %d events", most)
		}
	}
}

// allocated is the number of bytes that the process has ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// summarize makes a report, as text and as JSON, and a dump.
func (g *recording) summarize(t *testing.T, path string, by int) {
	t.Helper()
	again := func() *Run {
		run, err := OpenRun(pathOf(path))
		if err != nil {
			t.Fatalf("opened again: %v", err)
		}
		t.Cleanup(func() { run.Close() })
		return run
	}
	groupings := [][]string{nil, {"tag", "api", "thread", "device"}, {"library", "name", "module"}}[by]
	var err error
	if g.summary, err = Summarize(again(), groupings); err != nil {
		t.Fatalf("summary: %v", err)
	}
	for _, fault := range contradiction.In(g.summary) {
		t.Errorf("summary: %s", fault)
	}
	if err := errors.Join(render.JSON(io.Discard, g.summary), render.Text(io.Discard, g.summary, layout.Options{}),
		textform.Write(io.Discard, again())); err != nil {
		t.Errorf("report and dump: %v", err)
	}
}

// mergeRecording merges the spool into the trace: all that was read before is read again.
func mergeRecording(t *testing.T, path string, p files, want *recording, by int) {
	t.Helper()
	if err := Finalize(path); err != nil {
		if len(p.trace) == 0 && want.health.Events > 0 {
			t.Errorf("merged: %v", err)
		}
		return // what the trace is, or events of unknown kinds, kept it from being merged: both files are left
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := readRecording(t, path, files{trace: data}, by)
	if got == nil {
		t.Fatal("merged, the trace is refused")
	}
	forged := want.accounts > 0 && want.lost[0] == 0 // records of a kind that only a drainer writes, which are reported
	if len(got.events) != len(want.events) || got.health.Gaps != want.health.Gaps && !forged ||
		got.health.InFlight != want.health.InFlight || got.lost != want.lost || got.ended != want.ended {
		t.Errorf("merged: %d events, %+v, lost %v, %s; before %d events, %+v, lost %v, %s", len(got.events), got.health,
			got.lost, got.ended, len(want.events), want.health, want.lost, want.ended)
	}
	if a, b := got.summary, want.summary; !reflect.DeepEqual([]report.Level{a.Driver, a.Framework},
		[]report.Level{b.Driver, b.Framework}) {
		t.Errorf("merged: %+v %+v, before %+v %+v", a.Driver, a.Framework, b.Driver, b.Framework)
	}
}
