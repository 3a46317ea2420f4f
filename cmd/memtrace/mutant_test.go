package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"memtrace/analyzer/report"
	guests "memtrace/internal/guest"
	"memtrace/internal/mutant"
	"memtrace/trace"
	"memtrace/trace/spool"
	"memtrace/trace/textform"
)

// TestMutantsOfTraces: whatever becomes of a trace, every verb reads what stands before the damage as it was, says that
// there is damage where checksums tell, and gives figures that do not contradict each other. No verb panics, runs on
// without end, or takes memory that the file does not justify.
func TestMutantsOfTraces(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // each verb throws everything away
	seeds := seedTraces(t)
	all := make([]*mutant.Trace, len(seeds))
	for i, s := range seeds {
		all[i] = s.Trace
	}
	reader := newVerbReader(t)
	for i, s := range seeds {
		s.path = filepath.Join(reader.dir, fmt.Sprintf("seed%d.bin", i))
		if err := os.WriteFile(s.path, s.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		var whole mutant.Mutant
		if s.figures = reader.read(&whole, s, s.path); s.figures == nil {
			t.Fatalf("%s cannot be read", s.Name)
		}
	}
	mutant.Run(t, "traces", 40, func(m *mutant.Mutant) {
		seed := seeds[m.Rand.IntN(len(seeds))]
		damaged := seed.Mutate(m.Rand, all)
		m.How, m.Files[""] = damaged.How, damaged.Data
		checkEvents(m, seed, damaged)
		summary := reader.read(m, seed, m.Write(t, "mutant.bin"))
		if damaged.Damage == mutant.DamageSections && summary != nil {
			checkSaysSo(m, seed, summary)
		}
	})
}

// seedTrace is a trace that mutants are made of.
type seedTrace struct {
	*mutant.Trace
	path    string
	events  []trace.Event
	before  []int // by event: the offset behind the block that holds it
	figures *report.Summary
}

// seedTraces makes the traces of the golden reports, some that are like a training's, and one of a process that was
// killed.
func seedTraces(t *testing.T) []*seedTrace {
	t.Helper()
	var seeds []*seedTrace
	add := func(name string, data []byte) {
		parsed, err := mutant.ParseTrace(name, data)
		if err != nil {
			t.Fatal(err)
		}
		s := &seedTrace{Trace: parsed}
		reader, err := trace.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for {
			batch, err := reader.ReadBatch()
			if errors.Is(err, io.EOF) {
				break
			}
			s.events = append(s.events, batch...)
			for range batch {
				s.before = append(s.before, int(reader.Offset()))
			}
		}
		if h := reader.Health(); h.Truncated {
			t.Fatalf("%s: %s", name, h.Reason)
		}
		seeds = append(seeds, s)
	}
	encode := func(name, text string) {
		var file bytes.Buffer
		if err := textform.Encode(&file, strings.NewReader(text)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		add(name, file.Bytes())
	}
	archives, err := filepath.Glob("../../analyzer/render/testdata/*.txtar")
	if err != nil || len(archives) < 10 {
		t.Fatalf("%d archives of golden reports: %v", len(archives), err)
	}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range archive.Files {
			if slices.Contains([]string{"trace", "base", "new"}, part.Name) {
				encode(filepath.Base(path)+" "+part.Name, string(part.Data))
			}
		}
	}
	for i, events := range []int{300, 1200, 4000, 600} {
		encode(fmt.Sprintf("stream %d", i), mutant.Stream(uint64(i), events, i < 3, i == 1))
	}
	add("killed", recordKilled(t))
	return seeds
}

// recordKilled returns the trace of a recorder that was killed, merged with its spool.
func recordKilled(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "killed.bin")
	cmd := exec.Command(guests.Recorder(t, "testdata/guest/recorder.c"), "2", "300", "hold-kill")
	cmd.Env = append(os.Environ(), "MEMTRACE_OUTPUT="+path)
	if err := cmd.Run(); err == nil {
		t.Fatal("the recorder was not killed")
	}
	if err := spool.Finalize(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// checkEvents reads a mutant's events: those of blocks wholly before the damage are what they were, there are no more
// than the file can hold, and damage that a checksum covers is seen where it is.
func checkEvents(m *mutant.Mutant, seed *seedTrace, damaged mutant.TraceMutant) {
	reader, err := trace.NewReader(bytes.NewReader(damaged.Data), int64(len(damaged.Data)))
	if err != nil {
		if damaged.First < 0 || damaged.First >= 16 {
			m.Faultf("the head of the trace is whole, and %v", err)
		}
		return
	}
	same := len(seed.events)
	if damaged.First >= 0 {
		for same > 0 && seed.before[same-1] > damaged.First {
			same--
		}
	}
	count, most := 0, trace.MaxBlockEvents*(1+len(damaged.Data)/24)
	for {
		batch, err := reader.ReadBatch()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || len(batch) == 0 {
			m.Faultf("a batch of %d events, error %v", len(batch), err)
			return
		}
		for _, e := range batch {
			if count < same && e != seed.events[count] {
				m.Faultf("event %d stands before the damage at %d, was %+v and is %+v", count, damaged.First,
					seed.events[count], e)
				return
			}
			count++
		}
		if count > most {
			m.Faultf("more than %d events in %d bytes", most, len(damaged.Data))
			return
		}
	}
	if count < same {
		m.Faultf("%d events of %d that stand before the damage at %d", count, same, damaged.First)
	}
	if h := reader.Health(); damaged.Damage == mutant.DamageBytes && damaged.First >= 0 {
		checkDamageIsSeen(m, seed, damaged, h)
	}
}

// checkDamageIsSeen wants damage with wrong checksums to be reported at the section where it begins. A file that was
// cut between two sections looks like that of a killed program.
func checkDamageIsSeen(m *mutant.Mutant, seed *seedTrace, damaged mutant.TraceMutant, h trace.Health) {
	start, _ := seed.SectionAt(damaged.First)
	between := damaged.First == len(damaged.Data) && damaged.First == start
	switch {
	case between:
		if h.Truncated {
			m.Faultf("cut between sections at %d, and damaged at %d: %s", start, h.TruncatedAt, h.Reason)
		}
	case damaged.First > seed.EndAt() && start > seed.EndAt():
		if h.Truncated || h.Trailing == 0 {
			m.Faultf("damage behind the end, at %d: %+v", damaged.First, h)
		}
	case !h.Truncated && h.Altered != "": // whole sections twice, each of them as it should be: the end section tells
	// whatever else is damaged behind it
	case !slices.Contains([]int64{h.Restored.At, h.Torn.At, h.TruncatedAt}, int64(start)):
		m.Faultf("damage at %d, in the section at %d: truncated %v at %d: %s", damaged.First, start, h.Truncated,
			h.TruncatedAt, h.Reason)
	}
}

// checkSaysSo wants a summary that differs from the seed's to be called incomplete, or its run killed. Sections came or
// went as a whole, so no checksum tells.
func checkSaysSo(m *mutant.Mutant, seed *seedTrace, s *report.Summary) {
	if !s.Health.Complete || s.Process.Ended != seed.figures.Process.Ended || !seed.figures.Health.Complete {
		return
	}
	if seed.EndAt() == len(seed.Data) && s.Health.Events < uint64(len(seed.events)) && s.Health.SequenceGaps == 0 {
		return // like the trace of a process that was killed earlier
	}
	got, want := figures(s, seed), figures(seed.figures, seed)
	if got != want {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		m.Faultf("the figures changed and the run is called complete, %+v:\n%s\nbefore\n%s", s.Health, around(got, at),
			around(want, at))
	}
}

func around(text string, at int) string { return text[max(0, at-100):min(len(text), at+100)] }

// figures is what a report says of memory.
func figures(s *report.Summary, seed *seedTrace) string {
	list := []any{s.Driver, s.Framework, s.Other, s.Steps, s.Epochs, s.Lifetimes, s.Objects, len(s.OOM.Events),
		len(s.Marks)}
	if seed.EndAt() < len(seed.Data) { // nothing vouches for the names in the trace of a killed process
		list = append(list, s.Groups, s.Ledgers, s.Marks)
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
