package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"memtrace/analyzer/report"
	"memtrace/internal/oom"
	"memtrace/internal/render/layout"
	"memtrace/internal/render/oomtext"
	"memtrace/internal/sanitize"
	"memtrace/trace"
)

const (
	// maxSidecars bounds the OOMs in one process's text; later ones are in the trace only.
	maxSidecars = 10
	// quietAfter is how long nothing may come before a time of running out of memory counts as over, and quietRounds
	// how often the drainer must have looked meanwhile: a process that is stopped or starved has not been quiet.
	quietAfter  = 200 * time.Millisecond
	quietRounds = 8
)

// Which OOMs get a text file: the values of MEMTRACE_OOM as C passes them on.
const (
	oomTextsNone = "none"
	oomTextsAll  = "all"
)

// oomReporter follows the live memory, so that the process that runs out of it can report that at once: the text must
// exist even if the trace is never read. It never stops the draining.
type oomReporter struct {
	watch    *oom.Watch
	tables   *trace.Tables
	info     trace.Info
	all      bool // those that recovered get a text, too
	known    bool // versions were looked up
	sidecars int
	files    oomFiles
	applied  time.Time // when events came last
	looked   int       // rounds since then
	memory   guestMemory
}

// newOOMReporter returns nil where no texts are wanted, or no memory may be had for them.
func newOOMReporter(texts string, info trace.Info, memory guestMemory) *oomReporter {
	if texts == oomTextsNone || memory == 0 {
		return nil
	}
	t := &oomReporter{tables: &trace.Tables{}, info: info, all: texts == oomTextsAll, memory: memory}
	t.watch = oom.NewWatch(t.tables, info, memory.tables())
	return t
}

// guardOOM runs a part of the reporter's work. A panic in it ends the reports, not the draining.
func (d *drainer) guardOOM(work func(t *oomReporter) error) (err error) {
	if d.oom == nil {
		return nil
	}
	defer func() {
		if fault := recover(); fault != nil {
			d.oom = nil // what its tables hold outside of Go's heap stays: who knows what still refers to it
			d.log.Error().Msg(fmt.Sprintf("no more texts about running out of memory, internal fault: %v", fault))
		}
	}()
	return work(d.oom)
}

// reportOOM replays batches of events and writes what follows from them. last: there will be no more.
func (d *drainer) reportOOM(last bool, now time.Time, batches ...[]trace.Event) error {
	return d.guardOOM(func(t *oomReporter) error {
		t.looked++
		for _, events := range batches {
			t.apply(events, now)
		}
		switch {
		case last:
			t.watch.End()
		case t.watch.Pending() && t.looked >= quietRounds && now.Sub(t.applied) > quietAfter:
			t.watch.Finish()
		}
		for _, report := range t.watch.Take() {
			if err := d.writeReport(t, report); err != nil {
				return err
			}
		}
		for _, after := range t.watch.TakeRetries() {
			if err := t.writeRetries(&after); err != nil {
				d.log.Warn().Msg("no text about the attempts after running out of memory: " + err.Error())
			}
		}
		return d.boundOOM(t)
	})
}

// writeRetries adds what came after memory had run out to the files beside the trace.
func (t *oomReporter) writeRetries(after *report.OOMRetries) error {
	var text bytes.Buffer
	safe := sanitize.NewWriter(&text, sanitize.Lines)
	section, err := json.Marshal(after)
	if err := errors.Join(err, oomtext.WriteRetries(safe, after, layout.Options{}), safe.Flush()); err != nil {
		return err
	}
	return t.files.writeAfter(text.Bytes(), string(section))
}

func (t *oomReporter) apply(events []trace.Event, now time.Time) {
	if len(events) == 0 {
		return
	}
	t.applied, t.looked = now, 0
	if !t.known && mayBeOOM(events) {
		t.known = true
		t.watch.UpdateInfo(versions())
	}
	t.watch.Apply(events)
}

// mayBeOOM reports whether memory may have run out among the events: only then are the program's library versions read.
func mayBeOOM(events []trace.Event) bool {
	for i := range events {
		if events[i].Kind == trace.EventOOM || events[i].Kind == trace.EventAlloc && events[i].Status != 0 {
			return true
		}
	}
	return false
}

// pendingOOM reports whether the drainer should check again soon.
func (d *drainer) pendingOOM() bool { return d.oom != nil && d.oom.watch.Pending() }

// writeReport writes one report: the text file first, then the section that names it. Only the trace itself can make it
// fail.
func (d *drainer) writeReport(t *oomReporter, found *report.OOMReport) error {
	failed := found.Event.Outcome == report.OOMFailed
	if (failed || t.all) && t.sidecars < maxSidecars {
		t.sidecars++ // tries count: a full disk is not retried for ever
		path, err := t.writeOOMReport(d.tracePath, found)
		if err != nil {
			d.log.Warn().Msg("no text about running out of memory: " + err.Error())
		} else {
			found.Event.Sidecar = filepath.Base(path)
			d.log.Info().Msg("out of memory: see " + path)
		}
	}
	if !found.Event.Detailed && found.Event.Sidecar == "" {
		return nil // the events hold as much
	}
	text, err := found.Section()
	if err != nil {
		d.log.Warn().Msg(err.Error())
		return nil
	}
	if err := d.flush(); err != nil { // so that the events it refers to precede it
		return err
	}
	if err := d.writer.WriteOOM(text); err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	return nil
}

// writeOOMReport adds one OOM to the text beside the trace and returns the text's path.
func (t *oomReporter) writeOOMReport(tracePath string, found *report.OOMReport) (string, error) {
	var text bytes.Buffer
	safe := sanitize.NewWriter(&text, sanitize.Lines)
	if err := errors.Join(oomtext.Write(safe, found, layout.Options{Path: tracePath}), safe.Flush()); err != nil {
		return "", err
	}
	section, err := found.Section()
	if err != nil {
		section = ""
	}
	return t.files.write(tracePath, text.Bytes(), section)
}
