package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/contradiction"
	"memtrace/internal/diff"
	"memtrace/internal/exportcmd"
	"memtrace/internal/plot"
	"memtrace/trace"
)

// verbReader runs verbs in this process.
type verbReader struct {
	dir         string
	out, errors *os.File
	size        int // of the files
}

func newVerbReader(t testing.TB) *verbReader {
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

// written returns what a verb wrote to a stream, and empties it.
func written(file *os.File) []byte {
	size, _ := file.Seek(0, io.SeekCurrent)
	text := make([]byte, size)
	n, _ := file.ReadAt(text, 0)
	_ = file.Truncate(0)
	_, _ = file.Seek(0, io.SeekStart)
	return text[:n]
}

// run runs a verb. Its memory may grow with the file, and with the events in it, of which blocks may hold very many.
func (r *verbReader) run(t *testing.T, events uint64, args ...string) (text []byte, ok bool) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	status := newApp(strings.NewReader(""), r.out, r.errors).execute(args)
	runtime.ReadMemStats(&after)
	text, complaint := written(r.out), written(r.errors)
	if used, limit := after.TotalAlloc-before.TotalAlloc, 256<<20+4096*uint64(r.size)+4096*events; used > limit {
		t.Errorf("memtrace %s takes %d bytes for a file of %d with %d events, more than %d", args, used, r.size, events,
			limit)
	}
	if status != exitOK && (status != exitFailure || len(complaint) == 0) {
		t.Errorf("memtrace %s ends with %d and says %q", args, status, complaint)
	}
	return text, status == exitOK
}

// turns are checks that do not run for every trace: copies that must give the same figures, and files of all formats.
var turns = func() []string {
	list := []string{"strip", "anonymize", "compact", "embed", "html", "plot", "views", "check"}
	for _, kind := range plot.Names() {
		list = append(list, "plot "+kind)
	}
	for _, name := range exportcmd.Names() {
		list = append(list, "export "+name)
	}
	return list
}()

// read runs verbs on the trace at path, some together with that at before, compares their output, and returns the
// summary, nil if the trace cannot be read.
func (r *verbReader) read(t *testing.T, before, path string, turn uint8) *report.Summary {
	t.Helper()
	s := r.report(t, 1<<16, path)
	if s == nil {
		return nil
	}
	events := s.Health.Events
	checkContradictions(t, "report", s)
	r.groupings(t, s, path, turn)
	r.info(t, s, path)
	if text, ok := r.run(t, events, "dump", path); !ok || uint64(len(eventLine.FindAll(text, -1))) < events {
		t.Errorf("dump has not all of %d events", events)
	}
	r.run(t, events, "report", path)
	r.diff(t, s, before, path)
	r.turn(t, s, before, path, turns[int(turn)%len(turns)])
	return s
}

func (r *verbReader) turn(t *testing.T, s *report.Summary, before, path, turn string) {
	t.Helper()
	verb, what, _ := strings.Cut(turn, " ")
	out := filepath.Join(r.dir, "out.svg")
	args := []string{verb, "-o", out, "-f"}
	switch verb {
	case "strip", "anonymize", "compact", "embed":
		r.copied(t, s, path, verb)
		return
	case "views":
		for _, view := range []string{"modules,parameters,iterations", "timeline", "modules", "iterations"} {
			r.run(t, s.Health.Events, "report", "--view", view, path)
		}
		r.run(t, s.Health.Events, "report", "--details", path)
		args = []string{"report", "--from", "0s", "--to", "exit"}
	case "check":
		r.check(t, s, before, path)
		return
	case "html":
		r.run(t, s.Health.Events, append(args, before, path)...)
		args = append(args, "--blocks", "100")
	case "plot":
		if what != "" {
			args = append(args, "--kind", what)
		}
	case "export":
		switch args = append(args, what); what {
		case exportcmd.CSVName:
			args[2] = filepath.Join(r.dir, "tables")
		case exportcmd.ParquetName:
			args[2] = filepath.Join(r.dir, "parquet")
			args = append(args, "--events", "--run", "fuzz")
		}
	}
	r.run(t, s.Health.Events, append(args, path)...)
}

// check holds gates against the trace: a limit just below a figure fails, the figure itself passes.
func (r *verbReader) check(t *testing.T, s *report.Summary, before, path string) {
	t.Helper()
	args := []string{"check", "--allow-incomplete", "--json", "--max", "tag:*=1", "--max", "module:*=1", "--max",
		"library:*=1", "--max", "category:param=1", "--max", "growth=1/step", "--assert", "no-finding=alarm",
		"--assert", "no-driver-alloc-after=step:1", "--assert", "released-after=0.000001s>=50%", "--baseline", before}
	r.status(t, append(args, path), exitOK, exitOverBudget, exitFailure)
	peak := s.Main().PeakBytes
	if peak == 0 || peak > 1<<50 || s.Framework.Empty() && s.Versions["torch"] != "" {
		return // of a framework without blocks, no peak is compared
	}
	limit := func(bytes uint64) []string {
		return []string{"check", "--allow-incomplete", "--max", "peak=" + strconv.FormatUint(bytes, 10), path}
	}
	r.status(t, limit(peak), exitOK)
	r.status(t, limit(peak-1), exitOverBudget)
}

// status runs a verb that ends with one of some statuses.
func (r *verbReader) status(t *testing.T, args []string, statuses ...int) {
	t.Helper()
	status := newApp(strings.NewReader(""), r.out, r.errors).execute(args)
	text, complaint := written(r.out), written(r.errors)
	if !slices.Contains(statuses, status) || status == exitFailure && len(complaint) == 0 {
		t.Errorf("memtrace %s ends with %d, not %d, and says %q %q", args, status, statuses, text, complaint)
	}
}

func checkContradictions(t *testing.T, what string, s *report.Summary) {
	t.Helper()
	for _, fault := range contradiction.In(s) {
		t.Errorf("%s: %s", what, fault)
	}
}

// groupings requests other divisions of the same trace: what belongs to no division must be the same.
func (r *verbReader) groupings(t *testing.T, whole *report.Summary, path string, turn uint8) {
	t.Helper()
	by := [][]string{
		{"--by", "function,file,line,thread,api", "--at", "exit"},
		{"--by", "category,site,tag", "--at", "peak"},
		{"--by", "device,library,name,module", "--at", "0.000001s"},
		{"--by", "site,api", "--at", "oom"},
	}[turn%4]
	s := r.report(t, whole.Health.Events, append(slices.Clone(by), path)...)
	if s == nil {
		return // there was no such moment
	}
	checkContradictions(t, strings.Join(by, " "), s)
	if !sameLevels(s, whole) || s.Health.Events != whole.Health.Events || s.Health.Complete != whole.Health.Complete {
		t.Errorf("report %s: %+v %+v, without it %+v %+v", by, s.Driver, s.Framework, whole.Driver, whole.Framework)
	}
}

func (r *verbReader) info(t *testing.T, s *report.Summary, path string) {
	t.Helper()
	text, ok := r.run(t, s.Health.Events, "info", "--json", path)
	var info traceInfo
	if err := json.Unmarshal(text, &info); !ok || err != nil {
		t.Errorf("info: %v", err)
		return
	}
	if info.Events != s.Health.Events || info.Ended != s.Process.Ended || info.Health.Truncated != s.Health.Truncated ||
		info.Health.MissingEvents != s.Health.SequenceGaps {
		t.Errorf("info says %+v, report %+v, ended %s", info, s.Health, s.Process.Ended)
	}
	r.run(t, s.Health.Events, "info", path)
}

// diff checks that the new side of a difference is the trace's summary.
func (r *verbReader) diff(t *testing.T, s *report.Summary, before, path string) {
	t.Helper()
	text, ok := r.run(t, s.Health.Events, "diff", "--json", before, path)
	if !ok {
		if _, readable := r.run(t, s.Health.Events, "info", before); readable {
			t.Error("diff fails")
		}
		return
	}
	d := new(diff.Diff)
	if err := json.Unmarshal(text, d); err != nil {
		t.Errorf("diff: %v", err)
		return
	}
	for _, l := range d.Levels {
		want := map[string]report.Level{"driver": s.Driver, "framework": s.Framework}[l.Level]
		if l.Device == "all" && (l.Level == "driver" || l.Level == "framework") && (l.PeakBytes.New != want.PeakBytes ||
			l.AllocCount.New != want.AllocCount) {
			t.Errorf("diff: %+v, the summary says %+v", l, want)
		}
		if l.PeakBytes.Delta != int64(l.PeakBytes.New-l.PeakBytes.Base) {
			t.Errorf("diff: %+v", l)
		}
	}
}

// copied makes a copy, which must have the same figures.
func (r *verbReader) copied(t *testing.T, s *report.Summary, path, verb string) {
	t.Helper()
	to, events := filepath.Join(r.dir, "copy.bin"), s.Health.Events
	args := []string{verb, "-o", to, "-f", path}
	if verb == "embed" { // adds names in place
		to, args = path, []string{verb, path}
	}
	if _, ok := r.run(t, events, args...); !ok {
		if verb == "compact" {
			t.Error("compact fails")
		}
		return
	}
	c := r.report(t, events, to)
	if c == nil {
		t.Errorf("the copy of %s cannot be read", verb)
		return
	}
	if verb == "compact" { // it leaves out events, and less is certain where records were lost
		same := *s
		s = &same
		for _, l := range []*report.Level{&c.Driver, &c.Framework, &s.Driver, &s.Framework} {
			l.PeakBytesLower, l.LiveBytesLower, l.RequestedAtPeak, l.RequestedLive = nil, nil, nil, nil
		}
		c.Health.Events = events
	}
	if !sameLevels(c, s) || c.Health.Events != events || c.LostRecords != s.LostRecords {
		t.Errorf("%s: %+v %+v became %+v %+v; health %+v and %+v", verb, s.Driver, s.Framework, c.Driver, c.Framework,
			s.Health, c.Health)
	}
}

// sameLevels compares the levels of two summaries: the bounds that they point to, too, which == would compare by
// address.
func sameLevels(a, b *report.Summary) bool {
	return reflect.DeepEqual(a.Driver, b.Driver) && reflect.DeepEqual(a.Framework, b.Framework)
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
