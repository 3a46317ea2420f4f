package trace

import (
	"fmt"
	"unicode/utf8"

	"memtrace/trace/section"
)

const (
	// MaxOOMBytes bounds one report of running out of memory.
	MaxOOMBytes = 1 << 20
	// MaxOOMReports bounds how many of them a reader keeps.
	MaxOOMReports = 256
)

// OOMReplayKey is the fact why a recorder wrote no text about running out of memory: "off (...)", or "given up (...)"
// from some moment on.
const OOMReplayKey = "oom.replay"

// OOMReporter is a Source that keeps the recorder's reports of running out of memory.
type OOMReporter interface {
	// OOMReports returns the reports read so far, in the order of the file: JSON objects, see docs/format.md. They
	// belong to the source.
	OOMReports() []string
}

// WriteOOM writes the recorder's report of running out of memory, a JSON object of at most MaxOOMBytes, at once. Events
// that it speaks of may stand behind it.
func (w *Writer) WriteOOM(report string) error {
	if err := w.usable(); err != nil {
		return err
	}
	if err := checkOOM(report); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return w.sections.Write(section.OOM, []byte(report), len(report) > compressAbove)
}

func checkOOM(report string) error {
	switch {
	case len(report) > MaxOOMBytes:
		return fmt.Errorf("oom section of %d bytes, at most %d are allowed", len(report), MaxOOMBytes)
	case report == "" || !utf8.ValidString(report):
		return fmt.Errorf("oom section: no text")
	}
	return nil
}

// OOMReports implements OOMReporter.
func (r *Reader) OOMReports() []string { return r.oom }

func (r *Reader) takeOOM(payload []byte) error {
	report := string(payload)
	if err := checkOOM(report); err != nil {
		return err
	}
	if len(r.oom) < MaxOOMReports {
		r.oom = append(r.oom, report)
	}
	return nil
}
