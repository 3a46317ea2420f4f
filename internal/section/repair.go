package section

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"slices"
)

// Restored is damage that parity sections made good: all that was there was read.
type Restored struct {
	Stretches uint64
	At        int64 // offset of the first section that was damaged
}

// repairChecked bounds the bytes whose checksums are tried in one file: a damaged section of a megabyte may need as
// many attempts as it has 128 bytes.
const repairChecked = 1 << 30

// repair restores the section at s.Offset, which cannot be read, and reports whether it could. Reading goes on with it.
func (s *Reader) repair() bool {
	if s.at == nil || s.tried > repairChecked || s.repaired == s.Offset { // tried once, it is past repair
		return false
	}
	s.repaired = s.Offset
	if s.size >= 0 && s.size-s.Offset < ParitySize { // none follows
		return false
	}
	var copied [ParitySize]byte
	if n, _ := s.at.ReadAt(copied[:], s.Offset-ParitySize); n == ParitySize {
		if p, ok := parseParity(copied[:]); ok && p.start+p.length == s.Offset-ParitySize { // this is the second copy
			s.resume(copied[:], s.Offset+ParitySize)
			return true
		}
	}
	p, at, ok := s.findParity()
	if !ok {
		return false
	}
	if p.start+p.length == s.Offset { // the first of two copies is damaged; the second is equal
		s.resume(p.section(), at)
		return true
	}
	if s.Offset < p.start || s.Offset >= p.start+p.length || p.length > resyncBytes {
		return false
	}
	group := make([]byte, p.length)
	if _, err := s.at.ReadAt(group, p.start); err != nil {
		return false
	}
	now := parity{start: p.start}
	now.add(group)
	var wrong [parityBytes]byte // by offset modulo 128: what the damage did
	for i := range wrong {
		wrong[i] = p.sum[i] ^ now.sum[i]
	}
	if !s.undo(group, p.start, &wrong) {
		return false
	}
	s.resume(group[s.Offset-p.start:], p.start+p.length)
	return true
}

// resume goes on with the bytes at s.Offset as restored, and with the file after them.
func (s *Reader) resume(restored []byte, behind int64) {
	if s.Restored.Stretches == 0 {
		s.Restored.At = s.Offset
	}
	s.Restored.Stretches++
	s.r = io.MultiReader(bytes.NewReader(restored), io.NewSectionReader(s.at, behind, math.MaxInt64-behind))
}

// findParity returns the first parity section after s.Offset and its offset.
func (s *Reader) findParity() (p parity, at int64, ok bool) {
	buffer := make([]byte, readStep)
	for from := s.Offset + 1; from < s.Offset+resyncBytes; from += readStep - ParitySize + 1 {
		n, err := s.at.ReadAt(buffer, from)
		if err != nil && !errors.Is(err, io.EOF) {
			return p, 0, false
		}
		for i := 0; i+ParitySize <= n; i++ {
			if buffer[i] != byte(Parity) {
				continue
			}
			if p, ok := parseParity(buffer[i:]); ok {
				return p, from + int64(i), true
			}
		}
		if err != nil {
			break
		}
	}
	return p, 0, false
}

// undo looks for the place at which taking back what is wrong makes the section at s.Offset right, and leaves it so.
func (s *Reader) undo(group []byte, start int64, wrong *[parityBytes]byte) bool {
	section := int(s.Offset - start)
	if section < 0 || section+HeaderSize > len(group) {
		return false // too little is left of the group for a section
	}
	for _, arc := range arcs(wrong) {
		first := section - arc.length + 1
		first += int(uint64(int64(arc.start)-(start+int64(first)))) & (parityBytes - 1)
		for at := first; at < len(group); at += parityBytes {
			if h := ParseHeader(group[section:]); at >= section+HeaderSize && h.plausible() && at >= section+HeaderSize+
				int(h.Length) {
				break // after the section
			}
			if at < 0 || at+arc.length > len(group) {
				continue
			}
			apply(group[at:at+arc.length], start+int64(at), wrong)
			if s.sound(group[section:]) {
				return true
			}
			apply(group[at:at+arc.length], start+int64(at), wrong)
			if s.tried > repairChecked {
				return false
			}
		}
	}
	return false
}

func apply(b []byte, offset int64, wrong *[parityBytes]byte) {
	for i := range b {
		b[i] ^= wrong[(offset+int64(i))%parityBytes]
	}
}

// sound reports whether b begins with a section whose checksum is right.
func (s *Reader) sound(b []byte) bool {
	if len(b) < HeaderSize {
		return false
	}
	h := ParseHeader(b)
	if int64(h.Length) > int64(len(b)-HeaderSize) {
		return false
	}
	payload := b[HeaderSize : HeaderSize+int(h.Length)]
	s.tried += int64(len(payload))
	return crc32.Update(h.checksumSeed(), castagnoli, payload) == h.crc
}

// arc is a stretch of the offsets modulo 128 outside of which nothing is wrong.
type arc struct{ start, length int }

// arcs returns those that begin and end with something wrong, the shortest first: damage has been there, or it did not
// change every byte.
func arcs(wrong *[parityBytes]byte) []arc {
	var list []arc
	for start := range wrong {
		before := (start + parityBytes - 1) % parityBytes
		if wrong[start] == 0 {
			continue
		}
		for wrong[before] == 0 && before != start {
			before = (before + parityBytes - 1) % parityBytes
		}
		list = append(list, arc{start, (before-start+parityBytes)%parityBytes + 1})
	}
	slices.SortStableFunc(list, func(a, b arc) int { return a.length - b.length })
	return list
}
