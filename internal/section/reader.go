package section

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Damage means that the file cannot be used from the current section on. It is an error of Next and its like; readers
// of traces find it in Health.
type Damage struct{ Reason string }

func (e *Damage) Error() string { return e.Reason }

// Damaged returns a *Damage.
func Damaged(format string, args ...any) error { return &Damage{fmt.Sprintf(format, args...)} }

// Progress is how far a reader has come, and what it passed on the way.
type Progress struct {
	Offset   int64 // end of the last whole section
	Read     uint64
	Skipped  uint64
	Chain    Chain // of the sections passed
	Before   Chain // of those but the last
	Torn     Torn  // passed over
	Restored Restored
}

// Reader walks the sections of a file. Payload memory is reused and grows with the bytes that are really there.
type Reader struct {
	Progress
	r        io.Reader
	size     int64       // of the file, -1 if unknown
	at       io.ReaderAt // the same file, from its beginning; nil: it can only be read in order
	tried    int64       // bytes whose checksums were tried to restore sections
	repaired int64       // offset of the section that was tried to be restored last
	checked  int64       // bytes whose checksums were tried after damage
	hop      *Hop        // sections of events that are passed over unread; nil: none

	head       [HeaderSize]byte // of the section that is being read, headBytes of it
	headBytes  int
	passedOver bool // more of that section was read than head and payload hold
	payload    []byte
	raw        []byte
	dec        *zstd.Decoder
}

// NewReader returns a reader of the sections of a file of the given size (-1 if unknown), in which r is at offset. It
// can restore nothing: Continue gives it the file as a whole.
func NewReader(r io.Reader, size, offset int64) Reader {
	return Reader{Progress: Progress{Offset: offset}, r: r, size: size}
}

// Continue goes on in from, which is at Offset of the same file, whose size is now size (-1 if unknown).
func (s *Reader) Continue(from io.Reader, size int64) {
	s.r, s.size = from, size
	s.at, _ = from.(io.ReaderAt)
}

// Left returns how many bytes of the file follow the last whole section, -1 if that is unknown.
func (s *Reader) Left() int64 {
	if s.size < 0 {
		return -1
	}
	return s.size - s.Offset
}

// readStep is how much is allocated at a time where the file's size is unknown.
const readStep = 64 << 10

// NextWhole is Next, and damage is where it ends.
func (s *Reader) NextWhole() (Kind, []byte, error) {
	for {
		header, err := s.Header()
		if err != nil {
			return 0, nil, err
		}
		if s.hop.over(header.Kind, s.Offset) {
			if err := s.Leap(header); err != nil {
				return 0, nil, err
			}
			continue
		}
		if header.Kind == Parity || header.Kind == Keyframe { // neither is read on the way
			if _, err := s.Stored(header); err != nil {
				return 0, nil, err
			}
			s.Passed(header)
			continue
		}
		if !readable(header.Kind) {
			if err := s.Skip(header); err != nil {
				return 0, nil, err
			}
			continue
		}
		stored, err := s.Stored(header)
		if err != nil {
			return 0, nil, err
		}
		payload := stored
		if header.Raw != 0 {
			if payload, err = s.expand(header, stored); err != nil {
				return 0, nil, err
			}
		}
		s.Passed(header)
		return header.Kind, payload, nil
	}
}

func readable(kind Kind) bool {
	switch kind {
	case Info, Dictionary, Events, Index, End, OOM, Symbols:
		return true
	}
	return false
}

// Passed takes note that a section was read, or passed over.
func (s *Reader) Passed(h Header) {
	s.Offset += HeaderSize + int64(h.Length)
	s.Read++
	s.Before = s.Chain
	s.Chain.add(h.crc)
	if s.hop != nil && s.Offset == s.hop.Until {
		s.hop.Before = s.Chain
	}
}

// Header reads the header of the next section. io.EOF: no section follows.
func (s *Reader) Header() (Header, error) {
	s.payload, s.passedOver = s.payload[:0], false
	n, err := io.ReadFull(s.r, s.head[:])
	s.headBytes = n
	switch {
	case err == io.EOF:
		return Header{}, io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Header{}, Damaged("cut in a section header, %d of %d bytes are there", n, HeaderSize)
	case err != nil:
		return Header{}, fmt.Errorf("read section header at offset %d: %w", s.Offset, err)
	}
	h := ParseHeader(s.head[:])
	if left := s.size - s.Offset - HeaderSize; s.size >= 0 && int64(h.Length) > left {
		return h, Damaged("cut in a section of kind %d (%s): it has %d bytes, %d are there", h.Kind, h.Kind, h.Length,
			max(left, 0))
	}
	return h, nil
}

// Stored reads and checks the payload as it is in the file.
func (s *Reader) Stored(h Header) ([]byte, error) {
	if h.Length > MaxBytes {
		return nil, Damaged("%s section states %d bytes, more than the %d allowed", h.Kind, h.Length, MaxBytes)
	}
	want := int(h.Length)
	s.payload = s.payload[:0]
	for len(s.payload) < want {
		step := want - len(s.payload)
		if s.size < 0 {
			step = min(step, max(readStep, len(s.payload)))
		}
		if need := len(s.payload) + step; cap(s.payload) < need {
			grown := make([]byte, len(s.payload), need)
			copy(grown, s.payload)
			s.payload = grown
		}
		at := len(s.payload)
		n, err := io.ReadFull(s.r, s.payload[at:at+step])
		s.payload = s.payload[:at+n]
		if err != nil {
			return nil, s.readError(h, err, at+n)
		}
	}
	if crc := crc32.Update(h.checksumSeed(), castagnoli, s.payload); crc != h.crc {
		return nil, s.wrongChecksum(h)
	}
	return s.payload, nil
}

// Skip passes over a section of an unknown kind, checking it all the same. It may be larger than one of a known kind.
func (s *Reader) Skip(h Header) error {
	if h.Length <= MaxBytes {
		if _, err := s.Stored(h); err != nil {
			return err
		}
		s.Passed(h)
		s.Skipped++
		return nil
	}
	s.passedOver = true
	crc := h.checksumSeed()
	if cap(s.payload) < readStep {
		s.payload = make([]byte, 0, readStep)
	}
	for left := int(h.Length); left > 0; {
		part := s.payload[:min(left, readStep)]
		n, err := io.ReadFull(s.r, part)
		if err != nil {
			return s.readError(h, err, int(h.Length)-left+n)
		}
		crc = crc32.Update(crc, castagnoli, part)
		left -= n
	}
	if crc != h.crc {
		return s.wrongChecksum(h)
	}
	s.Passed(h)
	s.Skipped++
	return nil
}

func (s *Reader) readError(h Header, err error, got int) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return Damaged("cut in a section of kind %d (%s): it has %d bytes, %d are there", h.Kind, h.Kind, h.Length, got)
	}
	return fmt.Errorf("read %s section at offset %d: %w", h.Kind, s.Offset, err)
}

func (s *Reader) wrongChecksum(h Header) error {
	return Damaged("checksum of a section of kind %d (%s) is wrong", h.Kind, h.Kind)
}

func (s *Reader) expand(h Header, stored []byte) ([]byte, error) {
	if s.dec == nil {
		dec, err := newDecompressor()
		if err != nil {
			return nil, err
		}
		s.dec = dec
	}
	if uint64(h.Raw) > MaxBytes {
		return nil, Damaged("%s section: %v: %d bytes", h.Kind, errRawSize, h.Raw)
	}
	raw, err := decompress(s.dec, h.Kind, s.raw, stored, int(h.Raw))
	if err != nil {
		return nil, Damaged("%s section: %v", h.Kind, err)
	}
	s.raw = raw
	return raw, nil
}
