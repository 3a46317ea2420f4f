package trace

import "io"

// Continue lets a reader that has come to the end of a growing file go on. from stands at Offset in the same file,
// whose size is now size (-1 if unknown). It returns false, and changes nothing, where the file cannot have grown a
// part that the reader could use: its end section was read, what a section holds was damaged, or the end was not
// reached yet. A section that was half written when the reader came to it is read anew.
func (r *Reader) Continue(from io.Reader, size int64) bool {
	if !r.MayGrow() {
		return false
	}
	r.done, r.mayGrow = false, false
	r.sections.Continue(from, size)
	r.health.Truncated, r.health.TruncatedAt, r.health.Reason = false, 0, ""
	return true
}

// Fill lets the reader add to a dictionary and to facts that the caller already has, instead of to its own. It must be
// called before the first ReadBatch.
func (r *Reader) Fill(tables *Tables, info Info) { r.entries.tables, r.info = tables, info }

// MayGrow reports whether Continue would let the reader go on.
func (r *Reader) MayGrow() bool { return r.done && r.mayGrow }
