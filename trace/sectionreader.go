package trace

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
)

// damageError says that the file cannot be used from the current section on. It is never returned to callers of Reader;
// Health reports it.
type damageError struct{ reason string }

func (e *damageError) Error() string { return e.reason }

func damaged(format string, args ...any) error { return &damageError{fmt.Sprintf(format, args...)} }

// sectionReader walks the sections of a file. Payload memory is reused and grows with the bytes that are really there.
type sectionReader struct {
	r        io.Reader
	size     int64 // of the file, -1 if unknown
	offset   int64 // end of the last whole section
	skipped  uint64
	read     uint64
	chain    chain       // of the sections passed
	before   chain       // of those but the last
	at       io.ReaderAt // the same file, from its beginning; nil: it can only be read in order
	torn     Torn        // passed over
	restored Restored
	tried    int64 // bytes whose checksums were tried to restore sections
	repaired int64 // offset of the section that was tried to be restored last
	checked  int64 // bytes whose checksums were tried behind damage

	head       [sectionHeaderSize]byte // of the section that is being read, headBytes of it
	headBytes  int
	passedOver bool // more of that section was read than head and payload hold
	payload    []byte
	raw        []byte
	dec        *zstd.Decoder
}

// readStep is how much is allocated at a time where the file's size is unknown.
const readStep = 64 << 10

// nextWhole is next, and damage is where it ends.
func (s *sectionReader) nextWhole() (SectionKind, []byte, error) {
	for {
		header, err := s.header()
		if err != nil {
			return 0, nil, err
		}
		if header.kind == SectionParity {
			if _, err := s.stored(header); err != nil {
				return 0, nil, err
			}
			s.passed(header)
			continue
		}
		if !readable(header.kind) {
			if err := s.skip(header); err != nil {
				return 0, nil, err
			}
			continue
		}
		stored, err := s.stored(header)
		if err != nil {
			return 0, nil, err
		}
		payload := stored
		if header.raw != 0 {
			if payload, err = s.expand(header, stored); err != nil {
				return 0, nil, err
			}
		}
		s.passed(header)
		return header.kind, payload, nil
	}
}

func readable(kind SectionKind) bool {
	switch kind {
	case SectionInfo, SectionDictionary, SectionEvents, SectionIndex, SectionEnd, SectionOOM, SectionSymbols:
		return true
	}
	return false
}

func (s *sectionReader) passed(h sectionHeader) {
	s.offset += sectionHeaderSize + int64(h.length)
	s.read++
	s.before = s.chain
	s.chain.add(h.crc)
}

func (s *sectionReader) header() (sectionHeader, error) {
	s.payload, s.passedOver = s.payload[:0], false
	n, err := io.ReadFull(s.r, s.head[:])
	s.headBytes = n
	switch {
	case err == io.EOF:
		return sectionHeader{}, io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return sectionHeader{}, damaged("cut in a section header, %d of %d bytes are there", n, sectionHeaderSize)
	case err != nil:
		return sectionHeader{}, fmt.Errorf("read section header at offset %d: %w", s.offset, err)
	}
	h := parseSectionHeader(s.head[:])
	if left := s.size - s.offset - sectionHeaderSize; s.size >= 0 && int64(h.length) > left {
		return h, damaged("cut in a section of kind %d (%s): it has %d bytes, %d are there", h.kind, h.kind, h.length, max(left, 0))
	}
	return h, nil
}

// stored reads and checks the payload as it stands in the file.
func (s *sectionReader) stored(h sectionHeader) ([]byte, error) {
	if h.length > MaxSectionBytes {
		return nil, damaged("%s section states %d bytes, more than the %d allowed", h.kind, h.length, MaxSectionBytes)
	}
	want := int(h.length)
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

// skip passes over a section of an unknown kind, checking it all the same. It may be larger than one of a known kind.
func (s *sectionReader) skip(h sectionHeader) error {
	if h.length <= MaxSectionBytes {
		if _, err := s.stored(h); err != nil {
			return err
		}
		s.passed(h)
		s.skipped++
		return nil
	}
	s.passedOver = true
	crc := h.checksumSeed()
	if cap(s.payload) < readStep {
		s.payload = make([]byte, 0, readStep)
	}
	for left := int(h.length); left > 0; {
		part := s.payload[:min(left, readStep)]
		n, err := io.ReadFull(s.r, part)
		if err != nil {
			return s.readError(h, err, int(h.length)-left+n)
		}
		crc = crc32.Update(crc, castagnoli, part)
		left -= n
	}
	if crc != h.crc {
		return s.wrongChecksum(h)
	}
	s.passed(h)
	s.skipped++
	return nil
}

func (s *sectionReader) readError(h sectionHeader, err error, got int) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged("cut in a section of kind %d (%s): it has %d bytes, %d are there", h.kind, h.kind, h.length, got)
	}
	return fmt.Errorf("read %s section at offset %d: %w", h.kind, s.offset, err)
}

func (s *sectionReader) wrongChecksum(h sectionHeader) error {
	return damaged("checksum of a section of kind %d (%s) is wrong", h.kind, h.kind)
}

func (s *sectionReader) expand(h sectionHeader, stored []byte) ([]byte, error) {
	if s.dec == nil {
		dec, err := newDecompressor()
		if err != nil {
			return nil, err
		}
		s.dec = dec
	}
	if uint64(h.raw) > MaxSectionBytes {
		return nil, damaged("%s section: %v: %d bytes", h.kind, errRawSize, h.raw)
	}
	raw, err := decompress(s.dec, h.kind, s.raw, stored, int(h.raw))
	if err != nil {
		return nil, damaged("%s section: %v", h.kind, err)
	}
	s.raw = raw
	return raw, nil
}
