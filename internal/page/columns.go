package page

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"fmt"
	"slices"

	"memtrace/analyzer/report"
)

// A section of the page's binary data is consecutive columns of unsigned numbers, deflated and in base64. A column is
// stored in planes: the lowest byte of every number, then the second byte of every number, and so on, since equal
// adjacent bytes compress well. unpack in model.js is the decoder.

// section collects columns.
type section struct{ raw bytes.Buffer }

// column adds a number for each of count rows, in the given number of planes.
func (s *section) column(planes, count int, value func(row int) uint64) {
	at := s.raw.Len()
	s.raw.Grow(planes * count)
	s.raw.Write(make([]byte, planes*count))
	raw := s.raw.Bytes()[at:]
	for row := range count {
		v := value(row)
		for plane := range planes {
			raw[plane*count+row] = byte(v >> (8 * plane))
		}
	}
}

// slowBytes bounds the length of a section with the best compression, which takes minutes for longer ones.
const slowBytes = 16 << 20

// text compresses the section.
func (s *section) text() (string, error) {
	compression := flate.BestCompression
	if s.raw.Len() > slowBytes {
		compression = flate.DefaultCompression
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, compression)
	if err == nil {
		_, err = w.Write(s.raw.Bytes())
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return "", fmt.Errorf("compress blocks: %w", err)
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes()), nil
}

// packBlocks writes each block's lifetime, size and owner, and the times of events: everything needed for any moment
// except addresses. Sizes are an index of the list that it returns. Times are in multiples of unit nanoseconds,
// truncated.
func packBlocks(h *report.History, unit int64) (text string, sizes []uint64, err error) {
	var s section
	s.column(4, len(h.Blocks), func(row int) uint64 {
		if b := &h.Blocks[row]; int(b.Died) < len(h.Times) {
			return uint64(b.Died - b.Born)
		}
		return 0
	})
	known := make(map[uint64]int)
	s.column(4, len(h.Blocks), func(row int) uint64 { return uint64(number(known, &sizes, h.Blocks[row].Size)) })
	s.column(4, len(h.Blocks), func(row int) uint64 { return uint64(h.Blocks[row].Owner) })
	before := int64(0)
	s.column(8, len(h.Times), func(row int) uint64 {
		passed := max(h.Times[row]/unit-before, 0)
		before += passed
		return uint64(passed)
	})
	text, err = s.text()
	return text, sizes, err
}

// packPlaces writes the addresses of blocks: all distinct addresses, each as its distance from the one before, then for
// each block the index of its address, and its device.
func packPlaces(h *report.History) (text string, addresses int, err error) {
	var list []uint64
	for i := range h.Blocks {
		list = append(list, h.Blocks[i].Addr)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	var s section
	s.column(8, len(list), func(row int) uint64 {
		if row == 0 {
			return list[0]
		}
		return list[row] - list[row-1]
	})
	s.column(4, len(h.Blocks), func(row int) uint64 {
		at, _ := slices.BinarySearch(list, h.Blocks[row].Addr)
		return uint64(at)
	})
	s.column(2, len(h.Blocks), func(row int) uint64 { return uint64(uint16(h.Blocks[row].Device)) })
	text, err = s.text()
	return text, len(list), err
}
