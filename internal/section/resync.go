package section

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
)

// Torn is what a reader passed over: stretches of the file in which no section can be read, followed by sections that
// can. The zero value means none.
type Torn struct {
	Stretches uint64
	Bytes     int64  // in all of them
	At        int64  // offset of the first
	Reason    string // why the section that begins there cannot be used
	Records   uint64 // events that were in them, by the order numbers on both sides
}

func (t *Torn) add(at, n int64, reason string) {
	if t.Stretches == 0 {
		t.At, t.Reason = at, reason
	}
	t.Stretches++
	t.Bytes += n
}

const (
	// resyncBytes is how far after damage the next section is searched for: a section of any size may be the damaged
	// one.
	resyncBytes = MaxBytes + MaxBytes/4
	// resyncChecked bounds the bytes whose checksums are tried in one file, for a hostile one may hold a header at
	// every offset.
	resyncChecked = 8 * MaxBytes
)

// Next returns the next section of a kind that this version reads, its payload expanded; the payload is valid until the
// next call. Damage is restored where that is possible; other stretches are passed over where a section follows whose
// checksum is right. io.EOF: the file ends at a section's end. *Damage: it is cut or damaged, and no section follows.
// Anything else: reading failed.
func (s *Reader) Next() (Kind, []byte, error) {
	for {
		kind, payload, err := s.NextWhole()
		var damage *Damage
		if err == nil || !errors.As(err, &damage) {
			return kind, payload, err
		}
		if s.repair() {
			continue
		}
		at := s.Offset
		found, failed := s.resync()
		if failed != nil {
			return 0, nil, failed
		}
		if !found {
			return 0, nil, err
		}
		s.Torn.add(at, s.Offset-at, damage.Reason)
	}
}

// resync goes on to the first section after the one at s.Offset, of which consumed was read, and reports whether there
// is one. Where there is none, nothing but the position in the file has changed.
func (s *Reader) resync() (found bool, err error) {
	if s.passedOver {
		return false, nil
	}
	w := window{r: s.r, data: append(bytes.Clone(s.head[:s.headBytes]), s.payload...)}
	for at := 1; at < resyncBytes; at++ {
		if !w.reach(at + HeaderSize) {
			return false, w.err
		}
		h := ParseHeader(w.data[at:])
		if !h.plausible() || s.size >= 0 && s.Offset+int64(at)+HeaderSize+int64(h.Length) > s.size {
			continue
		}
		end := at + HeaderSize + int(h.Length)
		if s.checked += int64(h.Length); s.checked > resyncChecked {
			return false, nil
		}
		if !w.reach(end) {
			if w.err != nil {
				return false, w.err
			}
			continue
		}
		if crc32.Update(h.checksumSeed(), castagnoli, w.data[at+HeaderSize:end]) == h.crc {
			s.r = io.MultiReader(bytes.NewReader(w.data[at:]), s.r)
			s.Offset += int64(at)
			return true, nil
		}
	}
	return false, nil
}

// plausible reports whether these may be a header's bytes: cheap, for it is called at every offset.
func (h Header) plausible() bool {
	return h.Kind > 0 && int(h.Kind) < len(names) && h.Length <= MaxBytes && h.Raw <= MaxBytes
}

// window holds what was read after damage.
type window struct {
	r    io.Reader
	data []byte
	end  bool
	err  error // reading failed; not the end of the file
}

// reach reads on until n bytes are there, and reports whether they are. Memory grows with what arrives.
func (w *window) reach(n int) bool {
	for len(w.data) < n && !w.end {
		from := len(w.data)
		w.data = append(w.data, make([]byte, readStep)...)
		got, err := io.ReadFull(w.r, w.data[from:])
		w.data = w.data[:from+got]
		if err != nil {
			w.end = true
			if err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
				w.err = err
			}
		}
	}
	return len(w.data) >= n
}
