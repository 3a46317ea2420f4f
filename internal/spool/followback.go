package spool

import "memtrace/trace"

// A follower in a bookmark; names of tables begin with "follow.".

// KeepReading implements trace.Bookmarked. What the spool has is read again: its dictionary, and by their numbers
// those records that were not returned.
func (f *Follower) KeepReading(s *trace.State) bool {
	if f.reader == nil || !f.atSpool || len(f.pending) > 0 || f.losses.lost+f.losses.file+f.losses.reported > 0 {
		return false
	}
	books := s.Table("follow.books")
	books.PutBool(f.spool != nil)
	books.Put(f.events, f.late)
	return f.reader.KeepReading(s) && trace.KeepSeqs(s.Table("follow.numbers"), &f.have)
}

// GoOnReading implements trace.Bookmarked. It comes before the first Refresh.
func (f *Follower) GoOnReading(s *trace.State) bool {
	books := s.Table("follow.books")
	withSpool := books.Bool()
	f.events, f.late = books.Next(), books.Next()
	trace.RestoreSeqs(s.Table("follow.numbers"), &f.have)
	f.back = s
	return f.reader == nil && withSpool == (f.spool != nil) && s.Failed() == ""
}

// CameBack implements trace.Bookmarked.
func (f *Follower) CameBack() bool { return f.reader != nil && f.reader.CameBack() }
