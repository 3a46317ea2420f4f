package spool

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	"memtrace/trace"
)

// Extension is what the spool of FILE is called: FILE + Extension.
const Extension = ".spool"

// How a run ended.
const (
	EndedClean   = "clean"
	EndedKilled  = "killed"
	EndedRunning = "running"
)

// A program that ended by itself while its drainer could not write the end section: what the spool said about that goes to the trace's info.
const (
	endedKey    = "process.ended"
	endedByExit = "exit"
)

// Run is one process's recording: its trace file, continued by what a killed or running process has in its spool. It is a trace.Source.
type Run struct {
	file   *os.File
	size   int64
	reader *trace.Reader // nil when the trace file is empty or absent
	spool  *Spool        // nil when there is none
	alive  bool
	left   bool // the process asked for its last flush: it ended by itself

	tables  *trace.Tables
	info    trace.Info
	have    trace.SeqSet // numbers read from the trace file, kept only while a spool may repeat them
	pending []trace.Event
	lost    [3]uint64
	events  uint64
	late    uint64
	ended   bool // the trace file is read to its end
}

// OpenRun opens the recording at path: a trace, whose spool is looked for beside it, or a spool alone. Besides the system's errors it returns trace.ErrNotTrace,
// trace.ErrVersion, trace.ErrEmpty, ErrNotSpool and ErrVersion, wrapped with the path.
func OpenRun(path string) (*Run, error) {
	r := &Run{}
	spoolPath := path + Extension
	if strings.HasSuffix(path, Extension) {
		spoolPath, path = path, ""
	}
	if err := r.openSpool(spoolPath, path != ""); err != nil {
		return nil, err
	}
	// What the spool holds first, and only then the file and its size: what the drainer moves from one to the other meanwhile is then found in the file.
	if r.spool != nil {
		if err := r.snapshot(); err != nil {
			r.Close()
			return nil, err
		}
	}
	if path != "" {
		if err := r.openTrace(path); err != nil {
			r.Close()
			return nil, err
		}
	}
	return r, nil
}

func (r *Run) openSpool(path string, optional bool) error {
	s, err := Open(path, false)
	if errors.Is(err, os.ErrNotExist) && optional {
		return nil
	}
	if err != nil {
		return err
	}
	r.spool, r.alive, r.left = s, s.Alive(), s.leftByItself()
	return nil
}

func (r *Run) openTrace(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	r.file = file
	if st, err := file.Stat(); err == nil {
		if st.IsDir() {
			return fmt.Errorf("%s is a directory", path)
		}
		r.size = st.Size()
	}
	r.reader, err = trace.NewReader(file, r.size)
	if err != nil && r.spool != nil && errors.Is(err, trace.ErrEmpty) {
		r.reader, err = nil, nil // killed before the first flush: all is in the spool
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case r.reader == nil:
	case r.spool != nil:
		r.reader.Fill(r.tables, r.info)
	default:
		r.tables, r.info = r.reader.Tables(), r.reader.Info()
	}
	return nil
}

// snapshot copies what the spool holds now, since a living drainer reuses its segments.
func (r *Run) snapshot() error {
	look := &Follower{spool: r.spool, tables: &trace.Tables{}, info: trace.Info{}}
	if err := look.snapshot(); err != nil {
		return err
	}
	r.tables, r.info, r.pending, r.lost = look.tables, look.info, look.pending, look.lost
	return nil
}

// ReadBatch implements trace.Source.
func (r *Run) ReadBatch() ([]trace.Event, error) {
	if r.reader != nil && !r.ended {
		events, err := r.reader.ReadBatch()
		if err == nil {
			if r.spool != nil {
				for i := range events {
					if events[i].Kind != trace.EventLost {
						r.have.Add(events[i].Seq)
					}
				}
			}
			return events, nil
		}
		if !errors.Is(err, io.EOF) {
			return nil, err
		}
		r.ended = true
	}
	return r.leftover()
}

// leftover returns, once, the spool's events that the file does not have.
func (r *Run) leftover() ([]trace.Event, error) {
	var mark uint64
	if r.reader != nil {
		mark = r.reader.Watermark()
	}
	kept := r.pending[:0]
	for _, e := range r.pending {
		if !r.have.Add(e.Seq) {
			continue
		}
		if e.Seq < mark {
			e.Flags |= trace.FlagLate
			r.late++
		}
		kept = append(kept, e)
	}
	r.pending = nil
	if len(kept) == 0 {
		return nil, io.EOF
	}
	r.events += uint64(len(kept))
	return kept, nil
}

// Tables implements trace.Source.
func (r *Run) Tables() *trace.Tables { return r.tables }

// Info implements trace.Source.
func (r *Run) Info() trace.Info { return r.info }

// End implements trace.Source.
func (r *Run) End() (trace.End, bool) {
	if r.reader == nil {
		return trace.End{}, false
	}
	return r.reader.End()
}

// OOMReports implements trace.OOMReporter. A killed process's last one may be missing: the events are there.
func (r *Run) OOMReports() []string {
	if r.reader == nil {
		return nil
	}
	return r.reader.OOMReports()
}

// Lost implements trace.Source. The spool's counters include what the file says.
func (r *Run) Lost() (records, rings, dict uint64) {
	if r.spool != nil {
		return r.lost[0], r.lost[1], r.lost[2]
	}
	return r.reader.Lost()
}

// Health implements trace.Source. A cut tail that the spool makes good is no damage.
func (r *Run) Health() trace.Health {
	if r.reader == nil {
		return trace.Health{Events: r.events, Gaps: r.have.Gaps()}
	}
	h := r.reader.Health()
	if r.spool == nil {
		return h
	}
	h.Events += r.events
	h.LateEvents += r.late
	if r.ended {
		h.Gaps = r.have.Gaps()
		h.MaxSeq, _ = r.have.Max()
	}
	if h.Truncated && (r.alive || h.Gaps == 0) {
		h.Truncated, h.Reason, h.TruncatedAt = false, "", 0
	}
	return h
}

// Ended says how the run ended: EndedClean, EndedKilled or EndedRunning. A run whose program was replaced by exec counts as killed: the program that recorded
// got no chance to say goodbye. It is final after the last ReadBatch.
func (r *Run) Ended() string {
	if r.alive {
		return EndedRunning
	}
	if _, ok := r.End(); ok || r.left || r.info[endedKey] == endedByExit {
		return EndedClean
	}
	return EndedKilled
}

// Size returns the trace file's size in bytes, Offset how much of it was read: for progress.
func (r *Run) Size() int64 { return r.size }

// Offset returns how many bytes of the trace file were read.
func (r *Run) Offset() int64 {
	if r.reader == nil {
		return 0
	}
	return r.reader.Offset()
}

// HasSpool reports whether records outside the trace file belong to the run.
func (r *Run) HasSpool() bool { return r.spool != nil }

// Close releases files and mappings.
func (r *Run) Close() error {
	var err error
	if r.spool != nil {
		err = r.spool.Close()
	}
	if r.file != nil {
		err = errors.Join(err, r.file.Close())
	}
	return err
}

// tableFiller puts dictionary entries into tables that a reader may have begun to fill.
type tableFiller struct {
	tables *trace.Tables
	info   trace.Info
}

func (t tableFiller) WriteInfo(info trace.Info) error {
	maps.Copy(t.info, info)
	return nil
}

func (t tableFiller) WriteString(id trace.StringID, s string) error {
	t.tables.AddString(id, s)
	return nil
}

func (t tableFiller) WriteStack(s trace.Stack) error   { t.tables.AddStack(s); return nil }
func (t tableFiller) WriteModule(m trace.Module) error { t.tables.AddModule(m); return nil }
func (t tableFiller) WriteThread(x trace.Thread) error { t.tables.AddThread(x); return nil }
func (t tableFiller) WriteDevice(d trace.Device) error { t.tables.AddDevice(d); return nil }
