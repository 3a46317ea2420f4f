package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
	EndedUnknown = "unknown" // the trace lacks its end
)

// endedKey is the fact of how a program ended whose drainer could not write the end section, as far as its spool says.
const (
	endedKey    = "process.ended"
	endedByExit = "exit"
	endedByKill = "killed"
	endedNot    = "running" // in a copy that was made meanwhile
)

// Run is one process's recording as it was when it was opened: its trace file, continued by what a killed or running
// process has in its spool. It is a trace.Source.
type Run struct {
	look  *Follower
	alive bool
	left  bool // the process requested its last flush: it ended by itself

	signal string // that ended the process, where the caller knows it
}

// OpenRun opens the recording at path: a trace, whose spool is looked for beside it, or a spool alone. Besides the
// system's errors it returns trace.ErrNotTrace, trace.ErrVersion, trace.ErrEmpty, ErrNotSpool and ErrVersion, wrapped
// with the path.
func OpenRun(path string) (*Run, error) {
	spoolPath := path + Extension
	if strings.HasSuffix(path, Extension) {
		spoolPath, path = path, ""
	}
	look, err := Follow(path, spoolPath)
	if err != nil {
		return nil, err
	}
	r := &Run{look: look}
	if s := look.spool; s != nil { // before the look: a process that dies meanwhile has nothing that is not seen
		r.alive, r.left = s.Alive(), s.exitedByItself()
	}
	if err := look.Refresh(); err != nil {
		r.Close()
		return nil, err
	}
	if look.reader != nil {
		look.reader.DecodeAhead()
	}
	return r, nil
}

// Skip implements trace.Projector. Records of the spool keep all their fields.
func (r *Run) Skip(fields ...trace.Field) {
	if r.look.reader != nil {
		r.look.reader.Skip(fields...)
	}
}

// ReadBatch implements trace.Source.
func (r *Run) ReadBatch() ([]trace.Event, error) { return r.look.ReadBatch() }

// ReadColumns implements trace.ColumnSource.
func (r *Run) ReadColumns() (*trace.Batch, error) { return r.look.ReadColumns() }

// Tables implements trace.Source.
func (r *Run) Tables() *trace.Tables { return r.look.Tables() }

// Info implements trace.Source.
func (r *Run) Info() trace.Info { return r.look.Info() }

// End implements trace.Source.
func (r *Run) End() (trace.End, bool) { return r.look.End() }

// OOMReports implements trace.OOMReporter. A killed process's last one may be missing: the events are there.
func (r *Run) OOMReports() []string {
	if r.look.reader == nil {
		return nil
	}
	return r.look.reader.OOMReports()
}

// Lost implements trace.Source. The spool's counters include the file's.
func (r *Run) Lost() (records, rings, dict uint64) { return r.look.Lost() }

// Health implements trace.Source. A cut tail that the spool replaces is not damage: no number is missing but those of
// calls in flight, or as many as the recorder has counted as dropped.
func (r *Run) Health() trace.Health {
	h := r.look.books()
	if h.Truncated && r.HasSpool() && (r.alive || h.Gaps <= r.look.spool.dropped()) {
		h.Truncated, h.Reason, h.TruncatedAt = false, "", 0
	}
	if !h.Truncated {
		h.NoEnd = r.noEnd()
	}
	return h
}

// Ended returns how the run ended: EndedClean, EndedKilled, EndedRunning or EndedUnknown. A run whose program was
// replaced by exec counts as killed: the program that recorded could not end its trace. It is final after the last
// ReadBatch.
func (r *Run) Ended() string {
	if r.alive {
		return EndedRunning
	}
	if _, ok := r.End(); ok || r.left {
		return EndedClean
	}
	if r.HasSpool() {
		return EndedKilled
	}
	switch info := r.Info(); info[endedKey] {
	case endedByExit:
		return EndedClean
	case endedByKill:
		return EndedKilled
	case "": // written by an earlier version, or cut
		_, exits := info[trace.ExitStatusKey]
		if cut := r.look.books().Truncated || r.noEnd() != ""; !cut && !exits && info[trace.StopKey] == "" {
			return EndedKilled
		}
	}
	return EndedUnknown
}

// Size returns the trace file's size in bytes, Offset how much of it was read: for progress.
func (r *Run) Size() int64 { return r.look.Size() }

// Offset returns how many bytes of the trace file were read.
func (r *Run) Offset() int64 { return r.look.Offset() }

// NotSpool returns why the file at the name of the trace's spool was ignored: no recorder made it, or another one. It
// is nil where there is no file.
func (r *Run) NotSpool() error {
	if errors.Is(r.look.notSpool, fs.ErrNotExist) {
		return nil
	}
	return r.look.notSpool
}

// Ending implements trace.Unended: what a copy, or the trace with which the spool is merged, writes after its last
// event. It is final after the last ReadBatch.
func (r *Run) Ending() trace.Info {
	if !r.HasSpool() {
		return nil
	}
	info := r.look.drawn.Info()
	maps.Copy(info, trace.LostInfo(r.look.lost[1], r.look.lost[2]))
	if n := r.look.repeated; n > 0 { // of which one each is kept
		info[trace.AlteredKey] = fmt.Sprintf("%d records of its spool had the number of another one", n)
	}
	switch {
	case r.alive:
		info[endedKey] = endedNot
	case r.left:
		info[endedKey] = endedByExit
	default:
		info[endedKey] = endedByKill
	}
	return info
}

// HasSpool reports whether records outside the trace file belong to the run.
func (r *Run) HasSpool() bool { return r.look.spool != nil }

// Close releases files and mappings.
func (r *Run) Close() error { return r.look.Close() }

// Keyframes implements trace.Keyframed. A run whose spool holds records has none.
func (r *Run) Keyframes() *trace.Keyframes {
	if r.HasSpool() || r.look.reader == nil {
		return nil
	}
	return r.look.reader.Keyframes()
}

// Enter implements trace.Keyframed.
func (r *Run) Enter(list *trace.Keyframes, at *trace.KeyframePlace) { r.look.reader.Enter(list, at) }

// Leave implements trace.Keyframed.
func (r *Run) Leave() { r.look.reader.Leave() }

// BlockOffset implements trace.Keyframed. It is 0 for records of the spool.
func (r *Run) BlockOffset() int64 {
	if r.look.reader == nil {
		return 0
	}
	return r.look.reader.BlockOffset()
}
