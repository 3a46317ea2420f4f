package trace

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"memtrace/internal/section"
)

// Reader reads a trace from front to back, up to its end or to the first section that is cut or damaged. It is a
// Source. Its memory is bounded by the section limits and by what the dictionary holds; it never trusts a length field.
type Reader struct {
	sections section.Reader
	version  uint32
	done     bool
	mayGrow  bool // reading ended where a section that is being written would begin

	entries   entryDecoder
	info      Info
	end       *End
	lost      uint64 // records that lost events speak of
	watermark uint64

	block   blockDecoder
	batch   *Batch
	blockAt int64 // offset of the open block's section

	held         *Batch // to be returned after the lost event for what is missing before them
	reported     [1]Event
	tornReported uint64 // stretches passed over that were reported
	torn         uint64 // records that were in them

	tornEvents uint64 // lost events for them
	seqs       section.SeqSet
	health     Health
	oom        []string

	ahead   *decodeAhead // decodes the next events; nil: the reader does
	entered *entered     // nil where all blocks are read
	back    *comingBack  // nil unless reading goes on from a bookmark
}

// NewReader reads the head of a trace. size is the number of bytes in r, -1 if unknown; knowing it lets an absurd
// length be refused at once. The errors are ErrNotTrace, ErrVersion and ErrEmpty, or why reading failed.
func NewReader(r io.Reader, size int64) (*Reader, error) {
	var head [section.HeadSize]byte
	n, err := io.ReadFull(r, head[:])
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("read head of trace: %w", err)
	}
	version, err := parseHead(head[:n])
	if err != nil {
		return nil, err
	}
	reader := &Reader{version: version, info: make(Info), sections: section.NewReader(r, size, section.HeadSize)}
	reader.sections.Continue(r, size)
	reader.entries.tables = &Tables{}
	return reader, nil
}

// Version returns the format version of the file.
func (r *Reader) Version() uint32 { return r.version }

// Tables returns the dictionary as far as it was read.
func (r *Reader) Tables() *Tables { return r.entries.tables }

// Skip implements Projector.
func (r *Reader) Skip(fields ...Field) {
	if r.block.skip == nil {
		r.block.skip = new(atomic.Uint64)
	}
	for _, f := range fields {
		r.block.skip.Or(1 << f)
	}
}

// Info returns what is known about the run so far. It belongs to the reader.
func (r *Reader) Info() Info { return r.info }

// End returns the clean end of the run, ok=false before it was read and in a killed run.
func (r *Reader) End() (end End, ok bool) {
	if r.end == nil {
		return End{}, false
	}
	return *r.end, true
}

// Watermark returns the highest watermark read: every event numbered below it is in the file up to here.
func (r *Reader) Watermark() uint64 { return r.watermark }

// Offset returns how many bytes were read as whole sections, for progress and for continuing the file.
func (r *Reader) Offset() int64 { return r.sections.Offset }

// Lost returns what the recorder had to drop: records, rings, dictionary entries.
func (r *Reader) Lost() (records, rings, dict uint64) {
	if r.end == nil {
		rings, dict = lostFrom(r.info)
		return r.lost + r.torn, rings, dict
	}
	return max(r.lost, r.end.LostRecords) + r.torn, r.end.LostRings, r.end.LostDict
}

// Health reports what was read so far and what is missing.
func (r *Reader) Health() Health {
	h := r.health
	h.Sections, h.SkippedSections = r.sections.Read, r.sections.Skipped
	h.UnknownEvents = r.block.unknown
	h.Bytes = r.sections.Offset
	h.Torn = r.sections.Torn
	h.Torn.Records = r.torn
	h.Restored = r.sections.Restored
	if h.Altered == "" {
		h.Altered = r.info[AlteredKey]
	}
	h.Gaps, h.InFlight = drawnFrom(r.info).Missing(&r.seqs)
	h.MaxSeq, _ = r.seqs.Max()
	r.entered.books(&h)
	return h
}

// ReadBatch returns the next events, at least one, in the order of the file; they are valid until the next call. It
// returns io.EOF at the end of what can be read: see Health for whether that is the end of the trace. Any other error
// means that reading the file failed.
func (r *Reader) ReadBatch() ([]Event, error) {
	b, err := r.ReadColumns()
	if err != nil {
		return nil, err
	}
	return b.Rows(), nil
}

// ReadColumns implements ColumnSource.
func (r *Reader) ReadColumns() (*Batch, error) {
	if held := r.held; held != nil {
		r.held = nil
		r.count(held)
		return held, nil
	}
	for !r.done {
		b, err := r.nextBatch()
		if err != nil {
			r.stop(r.blockAt, err.Error())
			break
		}
		if b != nil && b.length > 0 {
			if lost, ok := r.tornBefore(b); ok {
				r.held = b
				return r.batchOf(lost), nil
			}
			r.count(b)
			return b, nil
		}
		if err := r.nextSection(); err != nil {
			return nil, err
		}
	}
	if lost, ok := r.tornAtEnd(); ok {
		return r.batchOf(lost), nil
	}
	return nil, io.EOF
}

// nextBatch returns the next events of the open block, none after its last one.
func (r *Reader) nextBatch() (*Batch, error) {
	if r.ahead != nil {
		return r.ahead.nextBatch(r)
	}
	if r.batch == nil {
		r.batch = new(Batch)
	}
	return r.batch, r.block.next(r.batch, batchEvents)
}

// nextSection reads one section. Damage ends reading without an error.
func (r *Reader) nextSection() error {
	at := r.sections.Offset
	kind, payload, err := r.passSection()
	var damage *section.Damage
	switch {
	case err == io.EOF:
		r.done, r.mayGrow = true, true
		return nil
	case errors.As(err, &damage):
		r.stop(r.sections.Offset, damage.Reason)
		r.mayGrow = true
		return nil
	case err != nil:
		return err
	}
	if err := r.take(kind, payload, at); err != nil {
		r.stop(at, err.Error())
	}
	return nil
}

// passSection goes on to the next section and returns it.
func (r *Reader) passSection() (section.Kind, []byte, error) {
	if r.ahead != nil {
		return r.ahead.passSection(r)
	}
	return r.sections.Next()
}

func (r *Reader) openBlock(payload []byte) error {
	if r.ahead != nil {
		return r.ahead.openBlock(r)
	}
	return r.block.open(payload)
}

func (r *Reader) take(kind section.Kind, payload []byte, at int64) error {
	switch kind {
	case section.Info:
		return decodeInfo(payload, r.info)
	case section.Dictionary:
		return r.entries.decode(payload)
	case section.Events:
		if err := r.openBlock(payload); err != nil {
			return err
		}
		r.blockAt = at
		r.watermark = max(r.watermark, r.block.watermark)
		r.health.Blocks++
	case section.OOM:
		return r.takeOOM(payload)
	case section.Symbols:
		return decodeSymbols(payload, r.entries.tables)
	case section.End:
		end, before, err := decodeEnd(payload)
		if err != nil {
			return err
		}
		if r.sections.Torn.Stretches == 0 { // else it is known why sections are missing
			r.health.Altered = r.sections.Before.Differs(before)
		}
		r.end = &end
		r.done = true
		return r.readEpilogue()
	}
	return nil
}

// stop ends reading at the section that begins at offset.
func (r *Reader) stop(offset int64, reason string) {
	r.done = true
	if r.ahead != nil {
		r.halt()
	}
	r.sections.Offset = offset
	r.health.Truncated, r.health.TruncatedAt, r.health.Reason = true, offset, reason
}

// count keeps the books on events that are about to be returned.
func (r *Reader) count(b *Batch) {
	r.health.Events += uint64(b.length)
	if first, ok := b.Dense(); ok {
		known := r.seqs.Len()
		r.seqs.AddRange(first, first+uint64(b.length)-1)
		r.health.Repeated += uint64(b.length) - (r.seqs.Len() - known)
		return
	}
	for i := range b.runs {
		for n := range b.runs[i].n {
			r.countOne(&b.runs[i], n)
		}
	}
}

func (r *Reader) countOne(c *Columns, i int) {
	if Flags(c.at(FieldFlags, i))&FlagLate != 0 {
		r.health.LateEvents++
	}
	if c.Kinds()[i] == EventLost { // an account of losses bears another event's number, or one that none has
		r.lost += c.at(FieldCount, i)
	} else if !r.seqs.Add(c.at(FieldSeq, i)) {
		r.health.Repeated++
	}
}

// Continue lets a reader that has come to the end of a growing file go on. from is at Offset in the same file, whose
// size is now size (-1 if unknown). It returns false, and changes nothing, where the file cannot have grown by a part
// that the reader could use: its end section was read, what a section holds was damaged, or the end was not reached
// yet. A section that was half written when the reader reached it is read again.
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
