package trace

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
)

// Torn is what a reader passed over: stretches of the file in which no section can be read, with sections behind them
// that can. The zero value says that there are none.
type Torn struct {
	Stretches uint64
	Bytes     int64  // in all of them
	At        int64  // offset of the first
	Reason    string // why the section that begins there cannot be used
	Records   uint64 // events that stood in them, by the order numbers on both sides
}

func (t *Torn) add(at, n int64, reason string) {
	if t.Stretches == 0 {
		t.At, t.Reason = at, reason
	}
	t.Stretches++
	t.Bytes += n
}

const (
	// resyncBytes is how far behind damage the next section is looked for: a section of any size may be the damaged one.
	resyncBytes = MaxSectionBytes + MaxSectionBytes/4
	// resyncChecked bounds the bytes whose checksums are tried in one file, for a hostile one may hold a header at every
	// offset.
	resyncChecked = 8 * MaxSectionBytes
)

// next returns the next section of a kind that this version reads, its payload expanded; the payload is valid until the
// next call. Damage is restored where that is possible; other stretches are passed over where a section follows whose checksum is right. io.EOF: the file ends at
// a section's end. *damageError: it is cut or damaged, and no section follows. Anything else: reading failed.
func (s *sectionReader) next() (SectionKind, []byte, error) {
	for {
		kind, payload, err := s.nextWhole()
		var damage *damageError
		if err == nil || !errors.As(err, &damage) {
			return kind, payload, err
		}
		if s.repair() {
			continue
		}
		at := s.offset
		found, failed := s.resync()
		if failed != nil {
			return 0, nil, failed
		}
		if !found {
			return 0, nil, err
		}
		s.torn.add(at, s.offset-at, damage.reason)
	}
}

// resync goes on to the first section behind the one at s.offset, of which consumed was read, and reports whether there
// is one. Where there is none, nothing but the position in the file has changed.
func (s *sectionReader) resync() (found bool, err error) {
	if s.passedOver {
		return false, nil
	}
	w := window{r: s.r, data: append(bytes.Clone(s.head[:s.headBytes]), s.payload...)}
	for at := 1; at < resyncBytes; at++ {
		if !w.reach(at + sectionHeaderSize) {
			return false, w.err
		}
		h := parseSectionHeader(w.data[at:])
		if !h.plausible() || s.size >= 0 && s.offset+int64(at)+sectionHeaderSize+int64(h.length) > s.size {
			continue
		}
		end := at + sectionHeaderSize + int(h.length)
		if s.checked += int64(h.length); s.checked > resyncChecked {
			return false, nil
		}
		if !w.reach(end) {
			if w.err != nil {
				return false, w.err
			}
			continue
		}
		if crc32.Update(h.checksumSeed(), castagnoli, w.data[at+sectionHeaderSize:end]) == h.crc {
			s.r = io.MultiReader(bytes.NewReader(w.data[at:]), s.r)
			s.offset += int64(at)
			return true, nil
		}
	}
	return false, nil
}

// plausible reports whether these may be a header's bytes: cheap, for it is asked at every offset.
func (h sectionHeader) plausible() bool {
	return h.kind > 0 && int(h.kind) < len(sectionNames) && h.length <= MaxSectionBytes && h.raw <= MaxSectionBytes
}

// window holds what was read behind damage.
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

// tornBefore returns the event that tells of what was lost in the stretches passed over since the last events, which
// these follow; false if nothing was.
func (r *Reader) tornBefore(b *Batch) (Event, bool) {
	if r.sections.torn.Stretches == r.tornTold {
		return Event{}, false
	}
	r.tornTold = r.sections.torn.Stretches
	rows := b.Rows()
	for i := range rows {
		if e := &rows[i]; e.Flags&FlagLate == 0 && e.Kind != EventLost {
			return r.tornUpTo(e.Seq)
		}
	}
	return Event{}, false
}

// tellOf returns a batch of one event.
func (r *Reader) tellOf(e Event) *Batch {
	r.told[0] = e
	return RowBatch(r.told[:])
}

// tornUpTo tells of the order numbers between those seen and next.
func (r *Reader) tornUpTo(next uint64) (Event, bool) {
	last, _ := r.seqs.Max()
	if next <= last+1 {
		return Event{}, false
	}
	n := next - last - 1
	r.torn += n
	r.tornEvents++
	r.health.Events++
	return Lost{Count: n, Until: next - 1}.Event(last), true
}

// tornAtEnd is tornBefore where no events follow: what the recorder says of the numbers that it drew, and of the events
// that it wrote, tells how many.
func (r *Reader) tornAtEnd() (Event, bool) {
	if r.sections.torn.Stretches == r.tornTold {
		return Event{}, false
	}
	r.tornTold = r.sections.torn.Stretches
	next := drawnFrom(r.info).Last + 1
	if seen := r.health.Events - r.tornEvents + r.torn; r.end != nil && r.end.EventCount > seen {
		last, _ := r.seqs.Max()
		next = max(next, last+1+r.end.EventCount-seen)
	}
	return r.tornUpTo(next)
}
