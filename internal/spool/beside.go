package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"memtrace/internal/safefile"
	"memtrace/trace"
)

// ErrForeign is returned where the spool beside a trace is another recording's: one of the two was moved.
var ErrForeign = errors.New("the spool of another recording")

// recordingKey is the fact that identifies a recording, in the trace and, made of the header, in the spool:
// recordingWords words.
const recordingKey = "process.recording"

const (
	recordingWords = 5
	// wordsAlike is how many of them two sides of one recording have in common at least: one may be damaged.
	wordsAlike = recordingWords - 1
)

// recording is who recorded, where and since when.
func (s *Spool) recording() string {
	words := make([]string, 0, recordingWords)
	for _, word := range [...]uint64{uint64(s.data.u32(offPID)), s.data.u64(offProcessStart),
		s.data.u64(offBootHash) ^ s.data.u64(offPIDNamespace), s.data.u64(offClockFirst),
		s.data.u64(offClockFirst + 16)} {
		words = append(words, strconv.FormatUint(word, 16))
	}
	return strings.Join(words, "-")
}

// continues reports whether the spool is the one of a trace with these facts. A trace without the recording's identity,
// for it was not begun or is of an older recorder, is compared by what such a trace has.
func (s *Spool) continues(of trace.Info) bool {
	own := s.Info()
	theirs := strings.Split(of[recordingKey], "-")
	if len(theirs) != recordingWords {
		const began = "clock.base_unix_ns"
		return of[began] == "" || of[began] == own[began]
	}
	alike := 0
	for i, word := range strings.Split(own[recordingKey], "-") {
		if word == theirs[i] {
			alike++
		}
	}
	return alike >= wordsAlike
}

// openBeside opens the spool of the trace, which is open; without one it opens the spool alone. A trace that has its
// end needs none, whatever file has the name. Where another trace is read without its spool, notSpool is why.
func (f *Follower) openBeside(path string) error {
	if f.file == nil {
		return f.openSpool(path, nil)
	}
	st, err := f.file.Stat()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		f.notSpool = err
		return nil
	}
	glance := trace.GlanceAt(f.file, st.Size())
	if glance.Ended {
		return nil
	}
	err = f.openSpool(path, glance.Info)
	if err == nil || !passedOver(err, st.Size() > 0) {
		return err
	}
	f.notSpool = err
	return nil
}

func (f *Follower) openSpool(path string, of trace.Info) error {
	s, err := Open(path, false)
	if err != nil {
		return err
	}
	if !s.continues(of) {
		return errors.Join(fmt.Errorf("%s: %w (process %d)", path, ErrForeign, s.PID()), s.Close())
	}
	s.compareNumbers()
	f.spool = s
	return nil
}

// passedOver reports whether a trace is read without its spool because of this: it is gone, or the file of its name was
// not made by a recorder, by one of another version, or by another recording. A trace without contents is useless
// without it.
func passedOver(err error, begun bool) bool {
	is := func(reason error) bool { return errors.Is(err, reason) }
	return is(fs.ErrNotExist) || is(safefile.ErrNotRegular) || begun && (is(fs.ErrPermission) || is(ErrNotSpool) ||
		is(ErrVersion) || is(ErrForeign))
}

// noEnd returns why the last records of a run may be missing, or "": the file has no end, none was written from a
// spool, and there is no spool.
func (r *Run) noEnd() string {
	look := r.look
	if _, ended := r.End(); ended || r.HasSpool() || look.file == nil || trace.HasDrawn(r.Info()) {
		return ""
	}
	name := filepath.Base(look.path) + Extension
	if target, err := os.Readlink(look.path + Extension); err == nil && errors.Is(look.notSpool, fs.ErrNotExist) {
		return name + " leads to " + target + ", which is not there"
	}
	var failed *fs.PathError
	switch {
	case look.notSpool == nil, errors.Is(look.notSpool, fs.ErrNotExist):
		return name + " is not there"
	case errors.As(look.notSpool, &failed):
		return name + ": " + failed.Err.Error()
	}
	return name + strings.TrimPrefix(look.notSpool.Error(), look.path+Extension)
}
