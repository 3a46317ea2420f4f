package symbol

import (
	"bytes"
	"cmp"
	"debug/dwarf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sort"
)

const (
	// maxLineRows bounds one unit's table of lines, maxLineFiles the files and folders that it names.
	maxLineRows, maxLineFiles = 16 << 20, 1 << 20
)

// lineRow maps the code from address up to the next row to a line. A row with end set ends a sequence.
type lineRow struct {
	address uint64
	file    int32 // index into the unit's files
	line    int32
	end     bool
}

// readLines reads the unit's table of lines.
func (u *unit) readLines() error {
	offset, ok := u.entry.Val(dwarf.AttrStmtList).(int64)
	if !ok {
		return nil
	}
	if offset < 0 || offset >= int64(len(u.info.line)) {
		return errors.New("damaged debug information: a table of lines outside of its section")
	}
	if err := checkLineHeader(u.info.line[offset:], u.info.order); err != nil {
		return damagedDebug(err)
	}
	reader, err := u.info.data.LineReader(u.entry)
	if err != nil || reader == nil {
		return err
	}
	folder := u.info.text(u.entry, dwarf.AttrCompDir)
	index := make(map[*dwarf.LineFile]int32)
	noteFiles := func() {
		for _, f := range reader.Files()[len(u.files):] {
			name := ""
			if f != nil {
				if name = f.Name; !filepath.IsAbs(name) && filepath.IsAbs(folder) {
					name = filepath.Join(folder, name) // package dwarf does so only for tables before version 5
				}
				if _, known := index[f]; !known {
					index[f] = int32(len(u.files))
				}
			}
			u.files = append(u.files, name)
		}
	}
	noteFiles()
	var sequences sequences
	var entry dwarf.LineEntry
	for count := 0; ; count++ {
		err := reader.Next(&entry)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || count > maxLineRows {
			u.lines = sequences.join(u.info.low)
			return damagedDebug(fmt.Errorf("table of lines: %w", cmp.Or(err, errTooLarge)))
		}
		if len(reader.Files()) > len(u.files) {
			noteFiles()
		}
		file := int32(-1)
		if i, known := index[entry.File]; known {
			file = i
		}
		sequences.add(lineRow{entry.Address, file, int32(max(0, min(entry.Line, 1<<31-1))), entry.EndSequence})
	}
	u.lines = sequences.join(u.info.low)
	return nil
}

// sequences are the pieces of a table of lines: runs of rows with rising addresses, each closed by an end.
type sequences struct {
	rows   []lineRow
	starts []int // of each sequence in rows
	closed bool
}

func (s *sequences) add(row lineRow) {
	if len(s.starts) == 0 || s.closed {
		s.starts = append(s.starts, len(s.rows))
	}
	s.rows = append(s.rows, row)
	s.closed = row.end
}

// join sorts the sequences by address. It drops those of functions that were removed from the file, and those that
// others overlap.
func (s *sequences) join(low uint64) []lineRow {
	pieces := make([][]lineRow, 0, len(s.starts))
	for i, start := range s.starts {
		end := len(s.rows)
		if i+1 < len(s.starts) {
			end = s.starts[i+1]
		}
		piece := s.rows[start:end]
		rising := slices.IsSortedFunc(piece, func(a, b lineRow) int { return cmp.Compare(a.address, b.address) })
		if len(piece) > 1 && piece[len(piece)-1].end && piece[0].address >= low && rising {
			pieces = append(pieces, piece)
		}
	}
	sort.SliceStable(pieces, func(i, j int) bool { return pieces[i][0].address < pieces[j][0].address })
	rows := make([]lineRow, 0, len(s.rows))
	covered := uint64(0)
	for _, piece := range pieces {
		if piece[0].address < covered {
			continue
		}
		// Where one sequence ends another may begin: the end must not hide the beginning.
		if n := len(rows); n > 0 && rows[n-1].address == piece[0].address {
			rows = rows[:n-1]
		}
		rows = append(rows, piece...)
		covered = piece[len(piece)-1].address
	}
	return rows
}

// checkLineHeader checks the counts of a table's header, by which package dwarf allocates without checking them against
// the data.
func checkLineHeader(data []byte, order binary.ByteOrder) error {
	h := headerReader{data: data, order: order}
	offsetSize := 4
	if h.number(4) == 0xffffffff {
		h.number(8)
		offsetSize = 8
	}
	version := h.number(2)
	if version < 5 {
		return h.err // the older header has lists that end by themselves
	}
	h.skip(2)
	h.skip(uint64(offsetSize))
	h.skip(5)
	h.skip(max(h.number(1), 1) - 1)
	for range 2 { // folders, then files
		forms := make([]uint64, 0, 8)
		for range h.number(1) {
			h.leb()
			forms = append(forms, h.leb())
		}
		count := h.leb()
		if h.err == nil && (count > maxLineFiles || count > uint64(len(h.data)) && len(forms) > 0 || count > 0 &&
			len(forms) == 0) {
			return fmt.Errorf("a table of lines with %d files", count)
		}
		for range count {
			for _, form := range forms {
				h.skipForm(form, offsetSize)
			}
			if h.err != nil {
				return h.err
			}
		}
	}
	return h.err
}

// headerReader reads forward through a header. Reading past the end sets err.
type headerReader struct {
	data  []byte
	order binary.ByteOrder
	err   error
}

func (h *headerReader) skip(n uint64) []byte {
	if h.err != nil || n > uint64(len(h.data)) {
		h.err, h.data = io.ErrUnexpectedEOF, nil
		return nil
	}
	taken := h.data[:n]
	h.data = h.data[n:]
	return taken
}

// number reads an unsigned number of 1, 2, 4 or 8 bytes.
func (h *headerReader) number(size uint64) uint64 {
	b := h.skip(size)
	if b == nil {
		return 0
	}
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(h.order.Uint16(b))
	case 4:
		return uint64(h.order.Uint32(b))
	}
	return h.order.Uint64(b)
}

func (h *headerReader) leb() uint64 {
	value, n := binary.Uvarint(h.data)
	if n <= 0 {
		h.skip(uint64(len(h.data)) + 1)
		return 0
	}
	h.skip(uint64(n))
	return value
}

// skipForm passes over a value of one of the forms that a header may use (DW_FORM_*).
func (h *headerReader) skipForm(form uint64, offsetSize int) {
	switch form {
	case 0x08: // string
		end := bytes.IndexByte(h.data, 0)
		h.skip(uint64(end + 1))
		if end < 0 {
			h.err = io.ErrUnexpectedEOF
		}
	case 0x0e, 0x1f, 0x17, 0x1d: // strp, line_strp, sec_offset, strp_sup
		h.skip(uint64(offsetSize))
	case 0x0f, 0x1a: // udata, strx
		h.leb()
	case 0x0b, 0x25: // data1, strx1
		h.skip(1)
	case 0x05, 0x26: // data2, strx2
		h.skip(2)
	case 0x27: // strx3
		h.skip(3)
	case 0x06, 0x28: // data4, strx4
		h.skip(4)
	case 0x07: // data8
		h.skip(8)
	case 0x1e: // data16
		h.skip(16)
	case 0x09: // block
		h.skip(h.leb())
	case 0x0a: // block1
		h.skip(h.number(1))
	default:
		h.err = fmt.Errorf("a table of lines with values of form %#x", form)
	}
}

// cString returns the string at an offset of a section, "" where there is none.
func cString(section []byte, at uint64) string {
	if at >= uint64(len(section)) {
		return ""
	}
	end := bytes.IndexByte(section[at:], 0)
	if end < 0 {
		return ""
	}
	return string(section[at : at+uint64(end)])
}
