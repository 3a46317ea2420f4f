package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"memtrace/internal/section"
)

// IndexEntry describes a stretch of the file that begins at an event block: what a reader needs to know to start in the
// middle.
type IndexEntry struct {
	Offset    int64  // of the first section of the stretch
	Events    uint64 // in the stretch
	FirstTime int64  // time of its first event, ns
	MaxSeq    uint64 // highest order number in it
	Watermark uint64 // of its last block
}

// maxIndexEntries bounds the index: past it, neighbours are merged, so a long run has longer stretches, not a longer
// index.
const maxIndexEntries = 4096

// indexBuilder collects entries while the file is written.
type indexBuilder struct {
	entries []IndexEntry
	blocks  int // blocks in each entry but the last
	filled  int // blocks in the last entry
}

func (x *indexBuilder) add(e IndexEntry) {
	if x.blocks == 0 {
		x.blocks = 1
	}
	if n := len(x.entries); n > 0 && x.filled < x.blocks {
		x.entries[n-1] = joinEntries(x.entries[n-1], e)
		x.filled++
		return
	}
	if len(x.entries) == maxIndexEntries {
		x.halve()
	}
	x.entries = append(x.entries, e)
	x.filled = 1
}

func (x *indexBuilder) halve() {
	half := x.entries[:0]
	for i := 0; i < len(x.entries); i += 2 {
		half = append(half, joinEntries(x.entries[i], x.entries[i+1]))
	}
	x.entries = half
	x.blocks *= 2
}

func joinEntries(a, b IndexEntry) IndexEntry {
	a.Events += b.Events
	a.MaxSeq = max(a.MaxSeq, b.MaxSeq)
	a.Watermark = b.Watermark
	return a
}

func appendIndex(dst []byte, entries []IndexEntry) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(entries)))
	var offset int64
	for _, e := range entries {
		dst = binary.AppendUvarint(dst, uint64(e.Offset-offset))
		dst = binary.AppendUvarint(dst, e.Events)
		dst = binary.AppendUvarint(dst, zigzag(e.FirstTime))
		dst = binary.AppendUvarint(dst, e.MaxSeq)
		dst = binary.AppendUvarint(dst, e.Watermark)
		offset = e.Offset
	}
	return dst
}

func decodeIndex(payload []byte) ([]IndexEntry, error) {
	d := decoder{data: payload}
	n := d.uvarint()
	if n > maxIndexEntries {
		return nil, fmt.Errorf("index section: %d entries, at most %d are allowed", n, maxIndexEntries)
	}
	var entries []IndexEntry
	var offset int64
	for range n {
		offset += int64(d.uvarint())
		e := IndexEntry{Offset: offset, Events: d.uvarint(), FirstTime: unzigzag(d.uvarint()), MaxSeq: d.uvarint(),
			Watermark: d.uvarint()}
		if d.failed || offset < 0 {
			return nil, fmt.Errorf("index section: %w", errShort)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// ReadIndex reads the index of a trace that ended cleanly, reading only the end of the file and the index itself. A
// trace without a clean end is an error; it can still be read from the start.
func ReadIndex(r io.ReaderAt, size int64) ([]IndexEntry, error) {
	if size < section.HeadSize+section.HeaderSize+8 {
		return nil, fmt.Errorf("read index: %w", ErrEmpty)
	}
	offset, ok := indexOffset(r, size)
	if !ok {
		return nil, errors.New("read index: the trace did not end cleanly")
	}
	sections := section.NewReader(io.NewSectionReader(r, offset, size-offset), size, offset)
	kind, payload, err := sections.Next()
	if err != nil {
		return nil, fmt.Errorf("read index at offset %d: %w", offset, err)
	}
	if kind != section.Index {
		return nil, fmt.Errorf("read index: the trace did not end cleanly")
	}
	return decodeIndex(payload)
}
