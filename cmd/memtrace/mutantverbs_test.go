package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"memtrace/analyzer/diff"
	"memtrace/analyzer/report"
	"memtrace/internal/mutant"
	"memtrace/trace"
)

// verbReader runs verbs in this process.
type verbReader struct {
	dir         string
	out, errors *os.File
}

func newVerbReader(t *testing.T) *verbReader {
	t.Helper()
	r := &verbReader{dir: t.TempDir()}
	for name, file := range map[string]**os.File{"stdout": &r.out, "stderr": &r.errors} {
		made, err := os.Create(filepath.Join(r.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { made.Close() })
		*file = made
	}
	return r
}

// said returns what a verb wrote to a stream, and empties it.
func said(file *os.File) []byte {
	size, _ := file.Seek(0, io.SeekCurrent)
	text := make([]byte, size)
	n, _ := file.ReadAt(text, 0)
	_ = file.Truncate(0)
	_, _ = file.Seek(0, io.SeekStart)
	return text[:n]
}

// run runs a verb. Its memory may grow with the file, and with the events in it, of which blocks may hold very many.
func (r *verbReader) run(m *mutant.Mutant, events uint64, args ...string) (text []byte, ok bool) {
	var status int
	used := mutant.Allocated(func() { status = newApp(strings.NewReader(""), r.out, r.errors).execute(args) })
	text, complaint := said(r.out), said(r.errors)
	size := uint64(0)
	for _, data := range m.Files {
		size += uint64(len(data))
	}
	if limit := 256<<20 + 4096*size + 4096*events; used > limit {
		m.Faultf("memtrace %s takes %d bytes for a file of %d with %d events, more than %d", args, used, size,
			events, limit)
	}
	if status != exitOK && (status != exitFailure || len(complaint) == 0) {
		m.Faultf("memtrace %s ends with %d and says %q", args, status, complaint)
	}
	return text, status == exitOK
}

// eventLine is the beginning of an event in a dump. It may have nothing that all of them have: a number of 0 is left
// out.
var eventLine = func() *regexp.Regexp {
	var names []string
	for i := range trace.EventSpecs {
		names = append(names, regexp.QuoteMeta(trace.EventSpecs[i].Name))
	}
	return regexp.MustCompile(`(?m)^(` + strings.Join(names, "|") + `)( |$)`)
}()

// read lets every verb read the trace at path, compares what they say, and returns the summary, nil if the trace cannot
// be read.
func (r *verbReader) read(m *mutant.Mutant, seed *seedTrace, path string) *report.Summary {
	text, ok := r.run(m, 1<<16, "report", "--json", path)
	if !ok {
		return nil
	}
	summary := new(report.Summary)
	if err := json.Unmarshal(text, summary); err != nil {
		m.Faultf("report --json: %v", err)
		return nil
	}
	r.fault(m, "report --json", summary)
	events := summary.Health.Events
	r.groupings(m, summary, path)
	r.info(m, summary, path)
	if text, ok = r.run(m, events, "dump", path); !ok || uint64(len(eventLine.FindAll(text, -1))) < events {
		m.Faultf("dump has not all of %d events", events)
	}
	r.run(m, events, "report", path)
	if text, ok = r.run(m, events, "diff", "--json", seed.path, path); ok {
		checkDiff(m, text, summary)
	} else {
		m.Faultf("diff with the seed fails")
	}
	// Each mutant goes through some of the rest, so that all of it is met often.
	switch m.Number % 8 {
	case 0:
		r.run(m, events, "report", "--view", "modules,parameters,iterations,timeline", path)
		r.run(m, events, "report", "--from", "0s", "--to", "exit", path)
		r.run(m, events, "export", "perfetto", "--limit", "100", "-o", filepath.Join(r.dir, "x"), "-f", path)
	case 1:
		r.run(m, events, "export", "speedscope", "-o", filepath.Join(r.dir, "x"), "-f", path)
		r.run(m, events, "export", "csv", "-o", filepath.Join(r.dir, "tables"), "-f", path)
	case 2:
		r.run(m, events, "export", "flamegraph", "-o", filepath.Join(r.dir, "x"), "-f", path)
		r.run(m, events, "export", "dhat", "-o", filepath.Join(r.dir, "x"), "-f", path)
	case 3:
		r.run(m, events, "export", "pprof", "-o", filepath.Join(r.dir, "x"), "-f", path)
		r.run(m, events, "export", "memory_viz", "--limit", "100", "-o", filepath.Join(r.dir, "x"), "-f", path)
	case 4:
		r.copied(m, summary, path, "strip")
	case 5:
		r.copied(m, summary, path, "anonymize")
	case 7:
		r.compacted(m, summary, path)
	case 6:
		r.run(m, events, "html", "--blocks", "100", "-o", filepath.Join(r.dir, "x"), "-f", path)
		r.run(m, events, "html", "-o", filepath.Join(r.dir, "x"), "-f", seed.path, path)
	}
	if m.Number%4 == 0 {
		r.embedded(m, summary)
	}
	return summary
}

func (r *verbReader) fault(m *mutant.Mutant, what string, s *report.Summary) {
	for _, fault := range mutant.Faults(s) {
		m.Faultf("%s: %s", what, fault)
	}
}

// groupings asks for other divisions of the same trace: what belongs to no division must be the same.
func (r *verbReader) groupings(m *mutant.Mutant, whole *report.Summary, path string) {
	by := [][]string{
		{"--by", "function,file,line,thread,api", "--at", "exit"},
		{"--by", "category,site,tag", "--at", "peak"},
		{"--by", "device,library,name,module", "--at", "0.000001s"},
		{"--by", "site,api", "--at", "oom"},
	}[m.Number%4]
	text, ok := r.run(m, whole.Health.Events, append(append([]string{"report", "--json"}, by...), path)...)
	if !ok {
		return // there was no such moment
	}
	s := new(report.Summary)
	if err := json.Unmarshal(text, s); err != nil {
		m.Faultf("report %s: %v", by, err)
		return
	}
	r.fault(m, fmt.Sprint("report ", by), s)
	if !sameLevel(s.Driver, whole.Driver) || !sameLevel(s.Framework, whole.Framework) ||
		s.Health.Events != whole.Health.Events || s.Health.Complete != whole.Health.Complete {
		m.Faultf("report %s: %+v %+v, without it %+v %+v", by, s.Driver, s.Framework, whole.Driver, whole.Framework)
	}
}

func (r *verbReader) info(m *mutant.Mutant, s *report.Summary, path string) {
	text, ok := r.run(m, s.Health.Events, "info", "--json", path)
	var info traceInfo
	if err := json.Unmarshal(text, &info); !ok || err != nil {
		m.Faultf("info: %v", err)
		return
	}
	if info.Events != s.Health.Events || info.Ended != s.Process.Ended || info.Health.Truncated != s.Health.Truncated ||
		info.Health.MissingEvents != s.Health.SequenceGaps {
		m.Faultf("info says %+v, report %+v, ended %s", info, s.Health, s.Process.Ended)
	}
	r.run(m, s.Health.Events, "info", path)
}

// checkDiff wants the new side of a difference to be the mutant's summary.
func checkDiff(m *mutant.Mutant, text []byte, s *report.Summary) {
	d := new(diff.Diff)
	if err := json.Unmarshal(text, d); err != nil {
		m.Faultf("diff: %v", err)
		return
	}
	for _, l := range d.Levels {
		want := map[string]report.Level{"driver": s.Driver, "framework": s.Framework}[l.Level]
		if l.Device == "all" && (l.Level == "driver" || l.Level == "framework") && (l.PeakBytes.New != want.PeakBytes ||
			l.AllocCount.New != want.AllocCount) {
			m.Faultf("diff: %+v, the summary says %+v", l, want)
		}
		if l.PeakBytes.Delta != int64(l.PeakBytes.New-l.PeakBytes.Base) {
			m.Faultf("diff: %+v", l)
		}
	}
}

// copied makes a copy without secrets, which must give the same figures.
func (r *verbReader) copied(m *mutant.Mutant, s *report.Summary, path, verb string) {
	to := filepath.Join(r.dir, "copy.bin")
	if _, ok := r.run(m, s.Health.Events, verb, "-o", to, "-f", path); ok {
		r.sameLevels(m, s, to, verb)
	}
}

// compacted thins a copy, of which peaks, what is live and what was allocated are the same.
func (r *verbReader) compacted(m *mutant.Mutant, s *report.Summary, path string) {
	to := filepath.Join(r.dir, "compact.bin")
	if _, ok := r.run(m, s.Health.Events, "compact", "-o", to, "-f", path); !ok {
		m.Faultf("compact fails")
		return
	}
	text, ok := r.run(m, s.Health.Events, "report", "--json", to)
	copied := new(report.Summary)
	if err := json.Unmarshal(text, copied); !ok || err != nil {
		m.Faultf("a compacted copy cannot be read: %v", err)
		return
	}
	figures := func(l report.Level) report.Level {
		// less is certain where records were lost
		l.PeakBytesLower, l.LiveBytesLower, l.RequestedAtPeak, l.RequestedLive = nil, nil, nil, nil
		return l
	}
	if !sameLevel(figures(copied.Driver), figures(s.Driver)) ||
		!sameLevel(figures(copied.Framework), figures(s.Framework)) || copied.LostRecords != s.LostRecords {
		m.Faultf("compact: %+v %+v became %+v %+v", s.Driver, s.Framework, copied.Driver, copied.Framework)
	}
}

// embedded adds names to a copy of the trace, where it is whole.
func (r *verbReader) embedded(m *mutant.Mutant, s *report.Summary) {
	to := filepath.Join(r.dir, "embedded.bin")
	if err := os.WriteFile(to, m.Files[""], 0o600); err != nil {
		m.Faultf("%v", err)
	}
	if _, ok := r.run(m, s.Health.Events, "embed", to); ok {
		r.sameLevels(m, s, to, "embed")
	}
}

// sameLevels compares a copy's figures with those of what it was made from.
func (r *verbReader) sameLevels(m *mutant.Mutant, s *report.Summary, path, verb string) {
	text, ok := r.run(m, s.Health.Events, "report", "--json", path)
	copied := new(report.Summary)
	if err := json.Unmarshal(text, copied); !ok || err != nil {
		m.Faultf("the copy of %s cannot be read: %v", verb, err)
		return
	}
	if !sameLevel(copied.Driver, s.Driver) || !sameLevel(copied.Framework, s.Framework) ||
		copied.Health.Events != s.Health.Events || copied.LostRecords != s.LostRecords {
		m.Faultf("%s: %+v %+v became %+v %+v; health %+v and %+v", verb, s.Driver, s.Framework, copied.Driver,
			copied.Framework, s.Health, copied.Health)
	}
}

// sameLevel compares what two levels say: the bounds that they point to, too, which == would compare by address.
func sameLevel(a, b report.Level) bool { return reflect.DeepEqual(a, b) }
