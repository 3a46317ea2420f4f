package section

import (
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Writer writes sections, each in one call of the underlying Write, so that a program killed between two leaves
// whole ones. After a failed write every call returns that error.
type Writer struct {
	w         io.Writer
	err       error
	offset    int64
	chain     Chain // of the sections so far; nothing where a file is continued
	continued bool
	parity    parity // of the sections since the last parity section
	noParity  bool

	enc     *zstd.Encoder
	section []byte // header and payload, as passed to Write
}

// NewWriter returns one that begins a file with head, or continues one that has size bytes.
func NewWriter(w io.Writer, size int64, head []byte) (*Writer, error) {
	enc, err := newCompressor()
	if err != nil {
		return nil, err
	}
	out := &Writer{w: w, enc: enc, offset: size, continued: size > 0, parity: parity{start: max(size, HeadSize)}}
	if size == 0 {
		if err := out.put(head); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Offset returns the size of the file so far.
func (w *Writer) Offset() int64 { return w.offset }

// Err returns why nothing more can be written, nil if it can.
func (w *Writer) Err() error { return w.err }

// Chain returns that of the sections so far: nothing where a file is continued.
func (w *Writer) Chain() Chain { return w.chain }

// NoParity leaves out what restores sections.
func (w *Writer) NoParity() { w.noParity = true }

// Close lets go of memory. It does not close the underlying file.
func (w *Writer) Close() { w.enc.Reset(nil) }

func (w *Writer) put(b []byte) error {
	n, err := w.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.err = fmt.Errorf("write trace at offset %d: %w", w.offset, err)
		return w.err
	}
	w.offset += int64(n)
	return nil
}

// link takes a section that is about to be written into the chain.
func (w *Writer) link(section []byte) {
	if !w.continued {
		w.chain.add(ParseHeader(section).crc)
	}
}

// Write writes raw as one section, compressed if requested and if that pays.
func (w *Writer) Write(kind Kind, raw []byte, compress bool) error {
	if len(raw) > MaxBytes {
		return fmt.Errorf("write trace: %s section of %d bytes, at most %d are allowed", kind, len(raw), MaxBytes)
	}
	w.section = append(w.section[:0], make([]byte, HeaderSize)...)
	header := Header{Kind: kind}
	if compress {
		w.section = w.enc.EncodeAll(raw, w.section)
		stored := len(w.section) - HeaderSize
		if stored < len(raw) && rawSizeAllowed(kind, stored, len(raw)) {
			header.Raw = uint32(len(raw))
		} else {
			w.section = w.section[:HeaderSize]
		}
	}
	if header.Raw == 0 {
		w.section = append(w.section, raw...)
	}
	header.Length = uint32(len(w.section) - HeaderSize)
	header.Put(w.section, w.section[HeaderSize:])
	w.link(w.section)
	w.parity.add(w.section)
	return w.put(w.section)
}

// WriteParity writes what restores the sections since the last time, if they are worth it or, with end, in any case.
func (w *Writer) WriteParity(end bool) error {
	if w.parity.length == 0 || !end && w.parity.length < parityGroup || w.noParity {
		return nil
	}
	section := w.parity.section()
	w.link(section)
	w.link(section)
	if err := w.put(append(section, section...)); err != nil {
		return err
	}
	w.parity = parity{start: w.offset}
	return nil
}
