package spool

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"memtrace/internal/safefile"
	"memtrace/internal/section"
	"memtrace/trace"
)

// snapshotTries bounds how often a look into the spool is repeated because the drainer moved records to the file
// meanwhile, which it does about once a second.
const snapshotTries = 8

// Follower reads the recording of a running process again and again, each time only what is new. It is a trace.Source
// whose ReadBatch returns io.EOF when it has caught up; Refresh lets it go on. A Run is a Follower that looks once.
//
// Order: the spool is read before the file is read on. What the drainer moves in between is then found in the file, and
// what is found in both places is recognized by its number. The other way round, records could slip through between the
// two. Records that a thread commits after others with higher numbers were returned come flagged late, like those of
// the spool that are numbered below the file's watermark and those that the file has as late.
type Follower struct {
	path   string // of the trace; "": a spool alone
	file   *os.File
	size   int64
	reader *trace.Reader // nil while the file has no head
	spool  *Spool        // nil without one
	dict   dictCursor

	notSpool error // why the trace is read without a spool; nil: it has one, or needs none

	tables  *trace.Tables
	info    trace.Info
	pending []trace.Event // of the spool, as of the last look
	atSpool bool          // since then the file was read to its end

	// The books on what was returned. Without a spool nothing can come twice, and the reader's own will do.
	have     section.SeqSet
	events   uint64
	late     uint64
	unknown  uint64         // records of no kind, as of the last look
	numbers  section.SeqSet // of its records then
	repeated uint64         // records then with a number that another one had
	lost     [3]uint64
	drawn    trace.Drawn // in the spool, as of the last look
	losses   lossBooks

	back *trace.State // of the bookmark that reading goes on from; nil: it begins at the beginning

	stuckAt   int64 // where the last refresh found the file cut, -1 if it was whole
	stuckSize int64
}

// Follow opens a running process's recording: tracePath, its trace, and spoolPath, the spool that it has mapped. Either
// may be empty, not both. Nothing is read before the first Refresh. The errors are those of OpenRun.
func Follow(tracePath, spoolPath string) (*Follower, error) {
	f := &Follower{path: tracePath, tables: &trace.Tables{}, info: trace.Info{}, stuckAt: -1}
	var err error
	if tracePath != "" {
		err = f.openFile()
	}
	if err == nil && spoolPath != "" {
		err = f.openBeside(spoolPath)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *Follower) openFile() (err error) {
	f.file, err = safefile.Open(f.path)
	return err
}

// Replaced reports whether another file has taken the trace's place since it was opened: its recorder compacted it, to
// keep to a limit. New events go there, so a follower of the trace has to start again.
func (f *Follower) Replaced() bool {
	if f.file == nil {
		return false
	}
	now, err := os.Stat(f.path)
	if err != nil {
		return false
	}
	opened, err := f.file.Stat()
	return err == nil && !os.SameFile(now, opened)
}

// Refresh looks for what is new; ReadBatch then returns it. Call it when ReadBatch has returned io.EOF.
func (f *Follower) Refresh() error {
	f.atSpool = false
	if f.spool != nil {
		if err := f.snapshot(); err != nil {
			return err
		}
	}
	if f.file == nil {
		return nil
	}
	if f.reader == nil && f.Replaced() { // before the spool was read: what it no longer has is in the new file
		f.file.Close()
		if err := f.openFile(); err != nil {
			return err
		}
	}
	st, err := f.file.Stat()
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.size = st.Size()
	if f.reader == nil {
		return f.begin()
	}
	f.noteDamage()
	if err := f.seek(f.reader.Offset()); err != nil {
		return err
	}
	f.reader.Continue(f.file, f.size)
	return nil
}

func (f *Follower) seek(offset int64) error {
	if _, err := f.file.Seek(offset, io.SeekStart); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return nil
}

// begin reads the head of the file, once there is one. A process that was killed before its first flush has all in the
// spool.
func (f *Follower) begin() error {
	if err := f.seek(0); err != nil { // another look may have found half a head
		return err
	}
	reader, err := trace.NewReader(f.file, f.size)
	if errors.Is(err, trace.ErrEmpty) && f.spool != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	reader.Fill(f.tables, f.info)
	if f.back != nil {
		reader.GoOnReading(f.back) // CameBack says whether it did
	}
	f.reader = reader
	return nil
}

// noteDamage distinguishes a section that is being written from one that never becomes whole.
func (f *Follower) noteDamage() {
	h := f.reader.Health()
	if !h.Truncated {
		f.stuckAt = -1
		return
	}
	if f.stuckAt != h.TruncatedAt {
		f.stuckAt, f.stuckSize = h.TruncatedAt, f.size
	}
}

// Damage returns where and why the file cannot be read on; ok is false while it can. A section that was half written
// when it was seen is not damage: the file has to grow by more than a section after it, or the reader has to reject its
// contents.
func (f *Follower) Damage() (offset int64, reason string, ok bool) {
	if f.reader == nil {
		return 0, "", false
	}
	h := f.reader.Health()
	if !h.Truncated {
		return 0, "", false
	}
	grown := f.stuckAt == h.TruncatedAt && f.size-f.stuckSize > section.MaxBytes
	if grown || !f.reader.MayGrow() {
		return h.TruncatedAt, h.Reason, true
	}
	return 0, "", false
}

// snapshot copies what the spool holds now. What is recorded meanwhile is left to the next look: a program may record
// faster than it is read, and there was no end.
func (f *Follower) snapshot() error {
	f.drawn = f.spool.Drawn()
	for range snapshotTries {
		before := f.positions()
		cursor := NewCursor(f.spool)
		cursor.dict, cursor.end = f.dict, f.drawn.Last+1
		f.collect(cursor)
		if err := cursor.Dictionary(tableFiller{f.tables, f.info}); err != nil {
			return err
		}
		f.dict = cursor.dict
		if slices.Equal(before, f.positions()) {
			break
		}
	}
	maps.Copy(f.info, f.spool.Info())
	f.lost[0], f.lost[1], f.lost[2] = f.spool.Lost()
	f.losses.look(f.spool)
	f.lost[0] = f.losses.lost
	return nil
}

// positions returns the drainer's published read positions. While they stay as they are, no segment that a cursor reads
// is released.
func (f *Follower) positions() []uint64 {
	s := f.spool
	list := []uint64{s.data.load64(offDrainedSeq)}
	for i := range s.ringsUsed() {
		off := s.ringOffset(i)
		list = append(list, uint64(s.data.load32(off+ringFirstSegment)), uint64(s.data.load32(off+ringReadSegment))<<32|
			uint64(s.data.load32(off+ringReadSlot)))
	}
	return list
}

// collect takes all committed records.
func (f *Follower) collect(cursor *Cursor) {
	f.pending, f.unknown = f.pending[:0], 0
	f.numbers, f.repeated = section.SeqSet{}, 0
	room := len(f.spool.data) / recordSize // no more fit, whatever a damaged spool holds
	for more := true; more && room > 0; {
		var events []trace.Event
		events, _, more = cursor.Collect(true)
		more = more && len(events) > 0
		room -= len(events)
		f.keep(cursor.keys, events)
	}
}

// keep adds what a cursor collected to what is pending. A record whose slot was released while it was read no longer
// has the number under which it was found: it is in the file.
func (f *Follower) keep(keys []key, events []trace.Event) {
	for i, e := range events {
		if e.Seq != keys[i].seq || f.spool.data.load64(keys[i].offset+recSeq) != e.Seq {
			continue
		}
		if !e.Kind.Known() { // damage: the recorder is of this version
			f.unknown++
			continue
		}
		if !f.numbers.Add(e.Seq) { // a chain may lead to records of another one again and again
			f.repeated++
			continue
		}
		e.Flags &^= trace.FlagLate // decided when they are returned
		f.pending = append(f.pending, e)
	}
}

// Tables implements trace.Source.
func (f *Follower) Tables() *trace.Tables { return f.tables }

// Info implements trace.Source.
func (f *Follower) Info() trace.Info { return f.info }

// End implements trace.Source.
func (f *Follower) End() (trace.End, bool) {
	if f.reader == nil {
		return trace.End{}, false
	}
	return f.reader.End()
}

// Lost implements trace.Source. The spool's counters include the file's, unless they are damaged.
func (f *Follower) Lost() (records, rings, dict uint64) {
	if f.reader != nil {
		records, rings, dict = f.reader.Lost()
	}
	return max(records, f.lost[0]), max(rings, f.lost[1]), max(dict, f.lost[2])
}

// Health implements trace.Source. A number that is missing now may belong to a call that has not returned.
func (f *Follower) Health() trace.Health {
	h := f.books()
	if _, _, damaged := f.Damage(); !damaged {
		h.Truncated, h.TruncatedAt, h.Reason = false, 0, ""
	}
	return h
}

// books returns what was returned so far, and where the file cannot be read further at the moment.
func (f *Follower) books() trace.Health {
	var h trace.Health
	if f.reader != nil {
		h = f.reader.Health()
	}
	if f.spool != nil {
		h.Events, h.LateEvents = f.events, f.late
		h.UnknownEvents += f.unknown
		h.Repeated += f.repeated
		drawn := f.drawn
		drawn.LeftOut = trace.ThinnedFrom(f.Info()).Events
		h.Gaps, h.InFlight = drawn.Missing(&f.have)
		h.MaxSeq, _ = f.have.Max()
	}
	return h
}

// Ended returns the state of the run: EndedClean once the trace's end was read, else EndedRunning; whether the process
// still lives is for the caller to know.
func (f *Follower) Ended() string {
	if _, ok := f.End(); ok {
		return EndedClean
	}
	return EndedRunning
}

// Size returns the trace file's size in bytes as of the last look, Offset how much of it was read: for progress.
func (f *Follower) Size() int64 { return f.size }

// Offset returns how many bytes of the trace file were read.
func (f *Follower) Offset() int64 {
	if f.reader == nil {
		return 0
	}
	return f.reader.Offset()
}

// Close releases the file and the mapping.
func (f *Follower) Close() error {
	var err error
	if f.reader != nil {
		f.reader.Close()
	}
	if f.spool != nil {
		err = f.spool.Close()
	}
	if f.file != nil {
		err = errors.Join(err, f.file.Close())
	}
	return err
}

// Moved reports whether records of this spool were moved to a trace, so that the spool alone is no longer complete.
func (s *Spool) Moved() bool { return s.data.load64(offDrainedSeq) != 0 }
