package section

import (
	"fmt"
	"io"
	"sync/atomic"
)

// Hop says which sections of events are passed over by their headers alone, with the parity that goes with them: those
// before a keyframe, and all once nothing more is needed. Keyframes are passed over, too. Their checksums enter the
// chain, but are not compared with their bytes. It may be used by the reader's goroutine and its caller at once.
type Hop struct {
	Until  int64 // offset of the first section of events that is read
	Before Chain // of the sections that end there; the zero value until one does
	left   atomic.Bool
}

// Leave lets all sections of events from now on be passed over.
func (h *Hop) Leave() { h.left.Store(true) }

func (h *Hop) over(kind Kind, offset int64) bool {
	switch {
	case h == nil:
		return false
	case kind == Events, kind == Parity:
		return offset < h.Until || h.left.Load()
	}
	return kind == Keyframe
}

// Hop lets the reader pass over sections. The file must be one in which it can go to any place.
func (s *Reader) Hop(h *Hop) { s.hop = h }

// At returns the file that is read, from its beginning, and its size; nil if it can only be read in order.
func (s *Reader) At() (file io.ReaderAt, size int64) { return s.at, s.size }

// Leap passes over a section without reading it, where the file allows that.
func (s *Reader) Leap(h Header) error {
	file, can := s.r.(io.Seeker)
	if !can || s.size < 0 {
		_, err := s.Stored(h)
		if err == nil {
			s.Passed(h)
		}
		return err
	}
	if _, err := file.Seek(int64(h.Length), io.SeekCurrent); err != nil {
		return fmt.Errorf("pass over %s section at offset %d: %w", h.Kind, s.Offset, err)
	}
	s.Passed(h)
	return nil
}

// Whole returns the payload of the next section, expanded, which must be of a kind. It is valid until the next call.
func (s *Reader) Whole(kind Kind) ([]byte, error) {
	header, err := s.Header()
	if err != nil {
		return nil, err
	}
	if header.Kind != kind {
		return nil, Damaged("%s section at offset %d, not %s", header.Kind, s.Offset, kind)
	}
	payload, err := s.Stored(header)
	if err == nil && header.Raw != 0 {
		payload, err = s.expand(header, payload)
	}
	if err == nil {
		s.Passed(header)
	}
	return payload, err
}
