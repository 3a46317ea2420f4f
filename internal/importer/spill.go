package importer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"memtrace/trace"
)

// Spill is scratch space for what an import must keep outside memory, such as an empty file. Its contents are private.
type Spill interface {
	io.ReaderAt
	io.WriterAt
}

// memorySpill is a Spill for those who have none.
type memorySpill struct{ data []byte }

func (m *memorySpill) WriteAt(p []byte, at int64) (int, error) {
	if need := at + int64(len(p)); need > int64(len(m.data)) {
		m.data = append(m.data, make([]byte, need-int64(len(m.data)))...)
	}
	return copy(m.data[at:], p), nil
}

func (m *memorySpill) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(m.data).ReadAt(p, at)
}

// spills writes several streams of records into one Spill, in pieces.
type spills struct {
	file Spill
	end  int64
}

// spillPiece is how much of a stream waits in memory.
const spillPiece = 64 << 10

// spill is one stream of records. It is written first and then read once.
type spill struct {
	to    *spills
	buf   []byte
	at    []int64 // offsets of its pieces
	size  []int
	count uint64
	last  entry // so that a record holds only what differs
	read  *bytes.Reader
	piece int
}

// add appends a record.
func (s *spill) add(e *entry) error {
	s.buf = append(s.buf, byte(e.action))
	s.buf = binary.AppendVarint(s.buf, int64(e.addr-s.last.addr))
	s.buf = binary.AppendUvarint(s.buf, e.size)
	s.buf = binary.AppendUvarint(s.buf, e.stream)
	s.buf = binary.AppendUvarint(s.buf, e.block)
	s.buf = binary.AppendVarint(s.buf, e.time-s.last.time)
	s.buf = binary.AppendVarint(s.buf, e.order-s.last.order)
	s.buf = binary.AppendUvarint(s.buf, uint64(e.stack.native))
	s.buf = binary.AppendUvarint(s.buf, uint64(e.stack.python))
	s.buf = binary.AppendUvarint(s.buf, uint64(e.tag))
	s.last = *e
	s.count++
	if len(s.buf) >= spillPiece {
		return s.flush()
	}
	return nil
}

func (s *spill) flush() error {
	if _, err := s.to.file.WriteAt(s.buf, s.to.end); err != nil {
		return fmt.Errorf("write to the temporary file: %w", err)
	}
	s.at, s.size = append(s.at, s.to.end), append(s.size, len(s.buf))
	s.to.end += int64(len(s.buf))
	s.buf = s.buf[:0]
	return nil
}

// rewind ends the writing.
func (s *spill) rewind() error {
	if err := s.flush(); err != nil {
		return err
	}
	s.last, s.read, s.piece = entry{}, bytes.NewReader(nil), 0
	return nil
}

var errSpill = errors.New("the temporary file is not what was written to it")

// next reads a record; ok is false after the last one. Records do not cross pieces.
func (s *spill) next() (e entry, ok bool, err error) {
	if s.count == 0 {
		return e, false, nil
	}
	for s.read.Len() == 0 {
		if s.piece == len(s.at) {
			return e, false, errSpill
		}
		s.buf = append(s.buf[:0], make([]byte, s.size[s.piece])...)
		if _, err := s.to.file.ReadAt(s.buf, s.at[s.piece]); err != nil {
			return e, false, fmt.Errorf("read the temporary file: %w", err)
		}
		s.read.Reset(s.buf)
		s.piece++
	}
	s.count--
	code, err := s.read.ReadByte()
	failed := err != nil
	unsigned := func() uint64 {
		v, err := binary.ReadUvarint(s.read)
		failed = failed || err != nil
		return v
	}
	signed := func() int64 {
		v, err := binary.ReadVarint(s.read)
		failed = failed || err != nil
		return v
	}
	e.action = action(code)
	e.addr = s.last.addr + uint64(signed())
	e.size, e.stream, e.block = unsigned(), unsigned(), unsigned()
	e.time = s.last.time + signed()
	e.order = s.last.order + signed()
	e.stack = stackRef{trace.StackID(unsigned()), trace.StackID(unsigned())}
	e.tag = trace.StringID(unsigned())
	if failed {
		return e, false, errSpill
	}
	s.last = e
	return e, true, nil
}
