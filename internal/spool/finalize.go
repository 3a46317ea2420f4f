package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"memtrace/internal/safefile"
	"memtrace/trace"
)

// ErrRunning is returned by Finalize while the process is alive and drains its own spool.
var ErrRunning = errors.New("the process is still running")

// Finalize moves what a dead process left in the spool of the trace at path into the trace, and removes the spool.
// Without a spool it does nothing. It may be interrupted and repeated: records are never lost and never doubled.
func Finalize(path string) error { return FinalizeEnded(path, 0, "") }

// FinalizeEnded is Finalize where it is known that a signal ended the process with that number, which is then written
// to the trace: it is not in the files. "" is unknown.
func FinalizeEnded(path string, pid int, signal string) error {
	spoolPath := path + Extension
	if _, err := os.Stat(spoolPath); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	run, err := OpenRun(path)
	if errors.Is(err, os.ErrNotExist) { // the trace itself is gone: begin a new one
		var file *os.File
		if file, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
			file.Close()
			run, err = OpenRun(path)
		}
	}
	if err != nil {
		return err
	}
	defer run.Close()
	if run.alive {
		return fmt.Errorf("%s: %w", path, ErrRunning)
	}
	if err := run.NotSpool(); err != nil {
		return err
	}
	if !run.HasSpool() { // it went meanwhile, or the trace needs none
		return removeSuperfluous(path)
	}
	if run.Info()["process.pid"] == strconv.Itoa(pid) {
		run.signal = signal
	}
	if err := run.mergeInto(path); err != nil {
		return fmt.Errorf("finish %s: %w", path, err)
	}
	return run.look.spool.Remove(path)
}

// removeSuperfluous removes the spool beside a trace that has its end, if it is that one's.
func removeSuperfluous(path string) error {
	s, err := Open(path+Extension, false)
	if err != nil {
		return nil // another file is there, and does no harm
	}
	defer s.Close()
	file, err := safefile.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		return err
	}
	if glance := trace.GlanceAt(file, st.Size()); !glance.Ended || !s.continues(glance.Info) {
		return nil
	}
	return s.Remove(path)
}

// mergeInto appends the spool's part to the file.
func (r *Run) mergeInto(path string) error {
	var leftover []trace.Event
	for {
		events, err := r.ReadBatch()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if r.look.atSpool {
			leftover = append(leftover, events...)
		}
	}
	if _, clean := r.End(); clean { // written while it was read
		return nil
	}
	file, err := r.OpenToWrite(path)
	if err != nil {
		return err
	}
	err = r.appendTo(file, leftover)
	return errors.Join(err, file.Close())
}

func (r *Run) appendTo(file *os.File, events []trace.Event) error {
	var opts trace.WriterOptions
	if r.look.reader != nil {
		opts = trace.WriterOptions{Append: r.look.reader.Health().Bytes, Watermark: r.look.reader.Watermark()}
	}
	if err := file.Truncate(opts.Append); err != nil {
		return err
	}
	if _, err := file.Seek(opts.Append, io.SeekStart); err != nil {
		return err
	}
	w, err := trace.NewWriter(file, opts)
	if err != nil {
		return err
	}
	info := r.look.spool.Info()
	if r.signal != "" {
		info[trace.SignalKey] = r.signal
	}
	if err := w.WriteInfo(info); err != nil {
		return err
	}
	cursor := NewCursor(r.look.spool)
	if err := cursor.Dictionary(w); err != nil {
		return err
	}
	last, _ := r.look.have.Max()
	if err := w.WriteEvents(events); err != nil {
		return err
	}
	if err := w.Flush(last + 1); err != nil {
		return err
	}
	return w.WriteInfo(r.Ending()) // last: it states that nothing is missing before it
}

// OpenToWrite opens the trace file that was read once more, for writing: through no link, and only if it is still the
// same file.
func (r *Run) OpenToWrite(path string) (*os.File, error) {
	if r.look.file == nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	st, err := r.look.file.Stat()
	if err != nil {
		return nil, err
	}
	return safefile.OpenToWrite(path, os.O_RDWR, safefile.IdentityOf(st))
}

// Remove removes the spool, which is that of the trace at tracePath: the name beside the trace and, where that is a
// link made for MEMTRACE_SPOOL_DIR, what it leads to. Users who can write to the folder may have replaced it meanwhile,
// for example by a link to one of the user's files: only this spool is removed.
func (s *Spool) Remove(tracePath string) error {
	path := tracePath + Extension
	beside, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if beside.Mode()&fs.ModeSymlink == 0 {
		return safefile.Remove(path, s.file)
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if st, err := os.Lstat(target); err != nil {
		return err
	} else if id := safefile.IdentityOf(st); id.Device != s.file.Device || id.Inode != s.file.Inode {
		return &fs.PathError{Op: "remove", Path: path, Err: safefile.ErrReplaced}
	}
	if err := safefile.Remove(path, safefile.IdentityOf(beside)); err != nil {
		return err
	}
	if err := safefile.Remove(target, s.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
