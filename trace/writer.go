package trace

import (
	"errors"
	"fmt"
	"io"

	"memtrace/internal/section"
)

// ErrClosed is returned by writes after Close.
var ErrClosed = errors.New("trace writer is closed")

// WriterOptions adjust a Writer; the zero value is right for a new file.
type WriterOptions struct {
	// Append continues a file that already holds this many bytes of whole sections (Health.Bytes of a Reader), whose
	// file position is there. No head is written. 0 begins a new file.
	Append int64
	// Watermark is the last watermark of the file that is continued.
	Watermark uint64
}

// Writer writes a trace. Every section is one call of the underlying Write, so that a program killed between two leaves
// whole sections. Its memory is bounded by one block. It is not safe for use by several goroutines. After a failed
// write every call returns that error.
type Writer struct {
	sections  *section.Writer
	closed    bool
	flagged   bool // late events are flagged already
	watermark uint64
	events    uint64

	entries    entryEncoder
	dictionary []byte // entries not yet written
	block      *blockEncoder
	index      indexBuilder
	pending    IndexEntry // index entry of the open block
	keyframe   int64      // offset of the keyframe that was written last; 0: none

	raw []byte // a block before compression
}

// NewWriter writes the head of a trace to w. The caller keeps w and closes it after Close.
func NewWriter(w io.Writer, opts WriterOptions) (*Writer, error) {
	sections, err := section.NewWriter(w, opts.Append, fileHead())
	if err != nil {
		return nil, err
	}
	return &Writer{sections: sections, block: newBlockEncoder(), watermark: opts.Watermark}, nil
}

// Offset returns the size of the file so far.
func (w *Writer) Offset() int64 { return w.sections.Offset() }

// Err returns why nothing more can be written, nil if it can.
func (w *Writer) Err() error { return w.sections.Err() }

func (w *Writer) usable() error {
	if err := w.sections.Err(); err != nil {
		return err
	}
	if w.closed {
		return ErrClosed
	}
	return nil
}

// WriteInfo writes what is known about the run, at once. It may be called many times; later values override earlier
// ones.
func (w *Writer) WriteInfo(info Info) error {
	if err := w.usable(); err != nil || len(info) == 0 {
		return err
	}
	return w.sections.Write(section.Info, appendInfo(nil, info), false)
}

// entryAdded checks the size of what append made of the dictionary and writes it out where it has grown large.
func (w *Writer) entryAdded(dictionary []byte) error {
	w.dictionary = dictionary
	if len(w.dictionary) < dictionaryTarget {
		return nil
	}
	return w.flushDictionary()
}

// tooLong is the error for a text that the format cannot hold.
func tooLong(what string, texts ...string) error {
	for _, s := range texts {
		if len(s) > MaxString {
			return fmt.Errorf("write trace: %s of %d bytes, at most %d are allowed", what, len(s), MaxString)
		}
	}
	return nil
}

// WriteString defines a string. Like all dictionary entries it is buffered and precedes, in the file, the events
// written after it.
func (w *Writer) WriteString(id StringID, s string) error {
	if err := errors.Join(w.usable(), tooLong("string", s)); err != nil {
		return err
	}
	return w.entryAdded(w.entries.appendString(w.dictionary, id, s))
}

// WriteStack defines a call stack.
func (w *Writer) WriteStack(s Stack) error {
	if err := w.usable(); err != nil {
		return err
	}
	if len(s.Frames) > MaxFrames {
		return fmt.Errorf("write trace: stack of %d frames, at most %d are allowed", len(s.Frames), MaxFrames)
	}
	return w.entryAdded(w.entries.appendStack(w.dictionary, s))
}

// WriteModule records a loaded object file.
func (w *Writer) WriteModule(m Module) error {
	if err := errors.Join(w.usable(), tooLong("module path or build id", m.Path, m.BuildID)); err != nil {
		return err
	}
	return w.entryAdded(w.entries.appendModule(w.dictionary, m))
}

// WriteThread records a thread or its new name.
func (w *Writer) WriteThread(th Thread) error {
	if err := errors.Join(w.usable(), tooLong("thread name", th.Name)); err != nil {
		return err
	}
	return w.entryAdded(w.entries.appendThread(w.dictionary, th))
}

// WriteDevice records a device.
func (w *Writer) WriteDevice(d Device) error {
	if err := errors.Join(w.usable(), tooLong("device name", d.Name, d.UUID)); err != nil {
		return err
	}
	return w.entryAdded(w.entries.appendDevice(w.dictionary, d))
}

// WriteEvents appends events to the open block; they are copied. An event numbered below the last watermark is marked
// FlagLate in the file. A block that is full is written with the last watermark.
func (w *Writer) WriteEvents(events []Event) error {
	if err := w.usable(); err != nil {
		return err
	}
	for i := range events {
		if kind := events[i].Kind; !kind.Known() {
			return fmt.Errorf("write trace: event %d has the unknown kind %d", events[i].Seq, kind)
		}
	}
	for len(events) > 0 {
		n := min(len(events), MaxBlockEvents-w.block.events(), batchEvents)
		w.appendEvents(events[:n])
		events = events[n:]
		if w.block.events() == MaxBlockEvents {
			if err := w.flushAll(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *Writer) appendEvents(events []Event) {
	if w.block.events() == 0 {
		w.pending = IndexEntry{FirstTime: events[0].Time}
	}
	late := false
	for i := range events {
		w.pending.MaxSeq = max(w.pending.MaxSeq, events[i].Seq)
		late = late || !w.flagged && events[i].Seq < w.watermark && events[i].Flags&FlagLate == 0
	}
	if late {
		events = append([]Event(nil), events...)
		for i := range events {
			if events[i].Seq < w.watermark {
				events[i].Flags |= FlagLate
			}
		}
	}
	w.block.append(events)
	w.events += uint64(len(events))
}

// Flush writes what is buffered: the dictionary, then the events, stating that every event numbered below watermark is
// now in the file. Without buffered events nothing carries the watermark to the file; it is then written with the next
// block.
func (w *Writer) Flush(watermark uint64) error {
	if err := w.usable(); err != nil {
		return err
	}
	w.watermark = max(w.watermark, watermark)
	return w.flushAll()
}

func (w *Writer) flushAll() error {
	if err := w.flushDictionary(); err != nil {
		return err
	}
	count := w.block.events()
	if count == 0 {
		return nil
	}
	w.pending.Offset, w.pending.Events, w.pending.Watermark = w.sections.Offset(), uint64(count), w.watermark
	w.raw = w.block.finish(w.raw[:0], w.watermark)
	if err := w.sections.Write(section.Events, w.raw, true); err != nil {
		return err
	}
	w.index.add(w.pending)
	return w.sections.WriteParity(false)
}

func (w *Writer) flushDictionary() error {
	if len(w.dictionary) == 0 {
		return nil
	}
	err := w.sections.Write(section.Dictionary, w.dictionary, len(w.dictionary) > compressAbove)
	w.dictionary = w.dictionary[:0]
	return err
}

// Close writes what is buffered, the index and the clean end. It does not close the underlying file.
func (w *Writer) Close(end End) error {
	if err := w.usable(); err != nil {
		return err
	}
	if err := tooLong("reason", end.Reason); err != nil {
		return err
	}
	if err := w.flushAll(); err != nil {
		return err
	}
	indexOffset := uint64(w.sections.Offset())
	if err := w.sections.Write(section.Index, appendIndex(nil, w.index.entries), false); err != nil {
		return err
	}
	if err := w.sections.WriteParity(true); err != nil {
		return err
	}
	if end.EventCount == 0 {
		end.EventCount = w.events
	}
	err := w.sections.Write(section.End, appendEnd(nil, end, w.sections.Chain(), indexOffset), false)
	w.closed = true
	w.sections.Close()
	return err
}
