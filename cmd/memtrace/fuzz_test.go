package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"memtrace/analyzer/report"
	"memtrace/internal/faults"
)

// lastTime is a trace whose last event comes at the end of time. plot panicked: it divided it into -2 columns.
const lastTime = `trace version=1
thread id=1 tid=4711 name="main"
alloc seq=1 time=0 thread=1 level=framework api=1 mem=device addr=0x7f5a40000000 size=1048576
free seq=2 time=9223372036854775807 thread=1 level=framework api=1 mem=device addr=0x7f5a40000000 size=1048576
flush watermark=3
end reason="exit" events=2 time=9223372036854775807
`

// backwards are traces whose time goes back, and lies before the beginning: plot panicked.
var backwards = []string{`trace version=1
thread id=1 tid=4711 name="main"
alloc seq=1 time=2000000 thread=1 level=framework api=1 mem=device addr=0x7f5a40000000 size=1048576
alloc seq=2 time=300 thread=1 level=framework api=1 mem=device addr=0x7f5a40200000 size=1048576
free seq=3 time=100 thread=1 level=framework api=1 mem=device addr=0x7f5a40000000
flush watermark=4
end reason="exit" events=3 time=200
`, `trace version=1
thread id=1 tid=4711 name="main"
alloc seq=1 time=-9000000 thread=1 level=framework api=1 mem=device addr=0x7f5a40000000 size=1048576
free seq=2 time=-5000 thread=1 level=framework api=1 mem=device addr=0x7f5a40000000
flush watermark=3
end reason="exit" events=2 time=-4000
`}

// FuzzVerbs: whatever the damage to a trace, no verb panics or takes memory that the file does not justify, each writes
// JSON that parses, figures that do not contradict each other and the same ones as the others; and where whole sections
// are missing, no report calls other figures than the trace's complete. turn chooses among verbs, of which not all are
// run each time.
func FuzzVerbs(f *testing.F) {
	m := newMutants(f)
	seeds, faulty, whole := m.seeds, 3, []int{slices.Index(turns, "views"), slices.Index(turns, "html")}
	if testing.Short() {
		faulty, whole = 1, nil
	}
	for i, file := range seeds {
		for _, turn := range append(whole, i) {
			f.Add(file, []byte{}, uint8(turn))
		}
		for n := range faulty {
			f.Add(file, []byte(faults.Random(uint64(100*n+i))), uint8(i/2+7*n))
		}
	}
	rich := seeds[len(seeds)-2]
	torn := slices.Clone(rich)
	clear(torn[len(torn)/2 : len(torn)/2+400])
	for turn := range turns {
		f.Add(rich, []byte{}, uint8(turn))
		f.Add(torn, []byte{}, uint8(turn))
	}
	f.Add(encoded(f, lastTime), []byte{}, uint8(slices.Index(turns, "plot")))
	for _, text := range backwards {
		for _, turn := range []string{"plot", "html"} {
			f.Add(encoded(f, text), []byte{}, uint8(slices.Index(turns, turn)))
		}
	}
	f.Fuzz(m.check)
}

// TestMutants is FuzzVerbs with random faults by their number: MUTANTS of them, from MUTANTS_FROM on, so that several
// processes can share a long run.
func TestMutants(t *testing.T) {
	number := func(name string, usual int) int {
		n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(usual)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	m, from := newMutants(t), number("MUTANTS_FROM", 0)
	for n := from; n < from+number("MUTANTS", 50); n++ {
		const others = 1 << 20 // than those of FuzzVerbs
		m.check(t, m.seeds[n%len(m.seeds)], []byte(faults.Random(uint64(others+n))), uint8(n/len(m.seeds)))
		if t.Failed() {
			t.Fatalf("mutant %d: MUTANTS=1 MUTANTS_FROM=%d go test -run TestMutants ./cmd/memtrace", n, n)
		}
	}
}

// mutants are traces to be damaged, and what reads them.
type mutants struct {
	seeds  [][]byte
	traces []*faults.Trace // the same, parsed
	reader *verbReader
}

func newMutants(t testing.TB) *mutants {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	m := &mutants{seeds: traceSeeds(t), reader: newVerbReader(t)}
	for _, file := range m.seeds {
		m.traces = append(m.traces, faults.Parse(file))
	}
	return m
}

// check damages a trace, and lets verbs read it.
func (m *mutants) check(t *testing.T, file, chosen []byte, turn uint8) {
	if len(file) > 1<<18 {
		return
	}
	whole, choices := faults.Parse(file), faults.Choices(chosen)
	damaged := whole.Damage(&choices, m.traces)
	m.reader.size = len(file) + len(damaged.Data)
	from, path := m.reader.write(t, "before.bin", file), m.reader.write(t, "damaged.bin", damaged.Data)
	after := m.reader.read(t, from, path, turn)
	if damaged.Kind != faults.Sections || after == nil {
		return
	}
	if before := m.reader.report(t, 1<<16, from); before != nil {
		checkSaysSo(t, whole, damaged.How, before, after)
	}
}

// traceSeeds returns the traces of the golden reports and some that are like a training's.
func traceSeeds(t testing.TB) (files [][]byte) {
	t.Helper()
	archives, err := filepath.Glob("../../internal/render/testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no golden reports: %v", err)
	}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range archive.Files {
			if slices.Contains([]string{"trace", "base", "new"}, part.Name) {
				files = append(files, encoded(t, string(part.Data)))
			}
		}
	}
	for i, events := range []int{300, 1200, 600} {
		files = append(files, encoded(t, stream(uint64(i), events, i < 2, i == 1)))
	}
	return files
}

// checkSaysSo requires that a summary that differs from that of the whole trace is marked incomplete, or its run
// killed. Sections came or went as a whole, so no checksum shows it.
func checkSaysSo(t *testing.T, whole *faults.Trace, how string, before, after *report.Summary) {
	t.Helper()
	if !after.Health.Complete || after.Process.Ended != before.Process.Ended || !before.Health.Complete {
		return
	}
	killed := whole.EndAt() == len(whole.Data)
	if killed && after.Health.Events < before.Health.Events && after.Health.SequenceGaps == 0 {
		return // like the trace of a process that was killed earlier
	}
	got, want := figures(after, killed), figures(before, killed)
	if got == want {
		return
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	around := func(text string) string { return text[max(0, at-100):min(len(text), at+100)] }
	t.Errorf("%s: the figures changed and the run is called complete, %+v:\n%s\nbefore\n%s", how, after.Health,
		around(got), around(want))
}

// figures are a report's figures of memory.
func figures(s *report.Summary, killed bool) string {
	list := []any{s.Driver, s.Framework, s.Other, s.Steps, s.Epochs, s.Lifetimes, s.Objects, len(s.OOM.Events),
		len(s.Marks)}
	if !killed { // nothing vouches for the names in the trace of a killed process
		list = append(list, s.Groups, s.Ledgers, s.Marks)
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// write writes a file into the reader's folder and returns its path.
func (r *verbReader) write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// report returns the report on a trace, nil if it cannot be read.
func (r *verbReader) report(t *testing.T, events uint64, args ...string) *report.Summary {
	t.Helper()
	text, ok := r.run(t, events, append([]string{"report", "--json"}, args...)...)
	if !ok {
		return nil
	}
	s := new(report.Summary)
	if err := json.Unmarshal(text, s); err != nil {
		t.Errorf("report %s: %v", fmt.Sprint(args), err)
		return nil
	}
	return s
}
