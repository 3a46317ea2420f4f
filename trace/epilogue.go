package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"memtrace/internal/section"
)

// The epilogue follows the end section: symbols and keyframes that were added to a finished trace, then a copy of the
// end section, so that the last bytes of the file lead to the index as before. Readers without support for epilogues
// read nothing after the end.

// readEpilogue reads what follows the end section. Damage there costs the epilogue alone.
func (r *Reader) readEpilogue() error {
	for {
		kind, payload, err := r.sections.NextWhole() // nothing follows that could be searched for
		if err == nil && kind == section.Symbols {
			if faulty := decodeSymbols(payload, r.entries.tables); faulty != nil {
				err = section.Damaged("%v", faulty)
			}
		}
		var damage *section.Damage
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, &damage):
			r.health.Epilogue, r.health.Trailing = damage.Reason, r.sections.Left()
			return nil
		case err != nil:
			return fmt.Errorf("behind the end: %w", err)
		}
	}
}

// ErrNoEnd is returned where something is to be added to a trace that did not end cleanly.
var ErrNoEnd = errors.New("the trace has no clean end: its program still runs or was killed, or it was cut")

// AppendSymbols adds symbols to a finished trace, after its end. It reads the whole file, to refuse one that a reader
// would not read to its end, and changes nothing but the remains of an earlier attempt that was interrupted. The caller
// opened the file for reading and writing, closes it, and keeps others from appending at the same time. Besides the
// system's errors it returns ErrNoEnd, ErrNotTrace, ErrVersion and ErrEmpty, wrapped with the path.
func AppendSymbols(file *os.File, symbols []Symbol) error {
	if len(symbols) == 0 {
		return nil
	}
	err := appendEpilogue(file, func(w *Writer, _ []byte) error { return w.WriteSymbols(symbols) })
	if err != nil {
		return fmt.Errorf("append symbols to %s: %w", file.Name(), err)
	}
	return nil
}

// AppendKeyframes adds what made hands to put, which returns its size, to a finished trace, as AppendSymbols adds
// symbols. made reads the trace meanwhile, and what it returns holds for the whole of it.
func AppendKeyframes(file *os.File,
	made func(put func(*Keyframe) (bytes int64, err error)) (*KeyframesClosing, error)) error {
	err := appendEpilogue(file, func(w *Writer, end []byte) error {
		closing, err := made(func(k *Keyframe) (int64, error) {
			before := w.Offset()
			err := w.WriteKeyframe(k)
			return w.Offset() - before, err
		})
		if err != nil {
			return err
		}
		return w.writeClosing(closing, end)
	})
	if err != nil {
		return fmt.Errorf("append keyframes to %s: %w", file.Name(), err)
	}
	return nil
}

// appendEpilogue adds sections behind the end, and a copy of the end section, whose contents write is handed. They are
// collected first, so that a program that is killed meanwhile leaves the file as it was.
func appendEpilogue(file *os.File, write func(w *Writer, end []byte) error) error {
	stat, err := file.Stat()
	if err != nil {
		return err
	}
	head := make([]byte, section.HeadSize)
	n, err := file.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	if _, err := parseHead(head[:n]); err != nil {
		return err
	}
	offset, end, err := findEnd(file, stat.Size())
	if err != nil {
		return err
	}
	var added bytes.Buffer
	w, err := NewWriter(&added, WriterOptions{Append: offset})
	if err != nil {
		return err
	}
	w.sections.NoParity()
	if err := write(w, end); err != nil {
		return err
	}
	if err := w.sections.Write(section.End, end, false); err != nil {
		return err
	}
	if err := file.Truncate(offset); err != nil {
		return err
	}
	if _, err = file.WriteAt(added.Bytes(), offset); err != nil { // a full disk must not leave half a section
		return errors.Join(err, file.Truncate(offset))
	}
	return nil
}

// findEnd returns the offset at which sections can be added after the end section, and that section's payload. Whole
// sections after the end stay; symbols that are cut or damaged there do not count; anything else is unknown and
// refused.
func findEnd(file io.ReaderAt, size int64) (offset int64, end []byte, err error) {
	sections := section.NewReader(io.NewSectionReader(file, section.HeadSize, size-section.HeadSize), size,
		section.HeadSize)
	var header section.Header
	for {
		header, err = sections.Header()
		if err == nil && header.Kind == section.End {
			if end, err = sections.Stored(header); err == nil {
				end = append([]byte(nil), end...)
				_, _, err = decodeEnd(end)
				sections.Passed(header)
			}
		} else if err == nil {
			err = sections.Skip(header)
		}
		var damage *section.Damage
		switch {
		case err == nil:
			continue
		case err != io.EOF && !errors.As(err, &damage):
			return 0, nil, err
		case end == nil && damage != nil:
			return 0, nil, fmt.Errorf("%w; reading it stops at offset %d: %s", ErrNoEnd, sections.Offset, damage.Reason)
		case end == nil:
			return 0, nil, ErrNoEnd
		case damage != nil && header.Kind != section.Symbols && header.Kind != section.End:
			return 0, nil, fmt.Errorf(
				"%d bytes that are no part of a trace follow its end at offset %d; cut them off, or write a clean copy with 'memtrace strip'",
				size-sections.Offset, sections.Offset)
		}
		return sections.Offset, end, nil
	}
}
