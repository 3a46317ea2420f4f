// Reads whole tables of files of SQLite, as other tools export them: no queries, no indexes, no files
// that are written meanwhile. The format is that of sqlite.org/fileformat2.html. A file may be damaged on purpose: what
// is read is bounded by its size.

package importer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf16"
)

// sqliteMagic is what a file begins with.
const sqliteMagic = "SQLite format 3\x00"

// sqliteFile is an open file.
type sqliteFile struct {
	r        io.ReaderAt
	pages    int64
	pageSize int64
	usable   int64 // bytes of a page that hold data
	text     binary.ByteOrder
	tables   map[string]*sqliteTable
	read     int64 // bytes of rows, since a table was begun
}

// sqliteTable is a table with a row id.
type sqliteTable struct {
	columns []string
	root    int64
	rowID   int // the column that is the row id, -1 for none
}

const (
	headerSize = 100
	maxRow     = 1 << 20 // bytes
	maxDepth   = 24      // of the tree of a table's pages
)

var errDamaged = errors.New("damaged: a page or a row of the SQLite file is not what it should be")

// openSQLite reads the names of the tables and their columns.
func openSQLite(r io.ReaderAt, size int64) (*sqliteFile, error) {
	var header [headerSize]byte
	if _, err := r.ReadAt(header[:], 0); err != nil || string(header[:len(sqliteMagic)]) != sqliteMagic {
		return nil, errors.New("no SQLite file")
	}
	f := &sqliteFile{r: r, pageSize: int64(binary.BigEndian.Uint16(header[16:])), tables: map[string]*sqliteTable{}}
	if f.pageSize == 1 {
		f.pageSize = 1 << 16
	}
	if f.pageSize < 512 || f.pageSize&(f.pageSize-1) != 0 {
		return nil, errDamaged
	}
	f.usable = f.pageSize - int64(header[20])
	if f.usable < 480 {
		return nil, errDamaged
	}
	switch binary.BigEndian.Uint32(header[56:]) {
	case 2:
		f.text = binary.LittleEndian
	case 3:
		f.text = binary.BigEndian
	}
	if f.pages = size / f.pageSize; f.pages*f.pageSize < int64(binary.BigEndian.Uint32(header[28:]))*f.pageSize {
		return nil, errors.New("cut: the SQLite file is shorter than it says; copy the whole file")
	}
	schema := &sqliteTable{columns: []string{"type", "name", "tbl_name", "rootpage", "sql"}, root: 1, rowID: -1}
	err := f.Rows(schema, schema.columns, func(row []any) error {
		name, _ := row[1].(string)
		root, _ := row[3].(int64)
		text, _ := row[4].(string)
		if row[0] == "table" && root > 0 {
			if t := parseTable(text); t != nil {
				t.root = root
				f.tables[name] = t
			}
		}
		return nil
	})
	return f, err
}

// Table returns the table of a name, or nil.
func (f *sqliteFile) Table(name string) *sqliteTable { return f.tables[name] }

// Has reports whether a table has a column.
func (t *sqliteTable) Has(column string) bool { return t.column(column) >= 0 }

func (t *sqliteTable) column(name string) int {
	for i, c := range t.columns {
		if c == name {
			return i
		}
	}
	return -1
}

// Rows yields the values of some columns of every row, in the order of row ids: nil, int64, float64, string or []byte,
// nil also for columns that the table does not have. A row is the caller's until the next one.
func (f *sqliteFile) Rows(t *sqliteTable, columns []string, each func(row []any) error) error {
	f.read = 0
	at := make([]int, len(columns))
	for i, c := range columns {
		at[i] = t.column(c)
	}
	seen := int64(0)
	row := make([]any, len(columns))
	return f.walk(t.root, 0, &seen, func(id int64, record []byte) error {
		values, err := f.record(record)
		if err != nil {
			return err
		}
		for i, c := range at {
			switch row[i] = nil; {
			case c < 0 || c >= len(values):
			case c == t.rowID && values[c] == nil:
				row[i] = id
			default:
				row[i] = values[c]
			}
		}
		return each(row)
	})
}

// page reads a page, numbered from 1.
func (f *sqliteFile) page(number int64) ([]byte, error) {
	if number < 1 || number > f.pages {
		return nil, errDamaged
	}
	data := make([]byte, f.pageSize)
	if _, err := f.r.ReadAt(data, (number-1)*f.pageSize); err != nil {
		return nil, fmt.Errorf("read page %d: %w", number, err)
	}
	return data, nil
}

// walk goes through the pages of a table. Each page has one place in it.
func (f *sqliteFile) walk(number int64, depth int, seen *int64, each func(id int64, record []byte) error) error {
	if *seen++; *seen > f.pages || depth > maxDepth {
		return errDamaged
	}
	data, err := f.page(number)
	if err != nil {
		return err
	}
	at := int64(0)
	if number == 1 {
		at = headerSize
	}
	kind, cells := data[at], int64(binary.BigEndian.Uint16(data[at+3:]))
	pointers := at + 8
	if kind == interiorPage {
		pointers = at + 12
	}
	if kind != interiorPage && kind != leafPage || pointers+2*cells > f.pageSize {
		return errDamaged
	}
	for i := range cells {
		cell := int64(binary.BigEndian.Uint16(data[pointers+2*i:]))
		switch {
		case kind == leafPage:
			id, record, err := f.cell(data[min(cell, f.usable):f.usable])
			if err == nil {
				err = each(id, record)
			}
			if err != nil {
				return err
			}
		case cell+4 > f.usable:
			return errDamaged
		default:
			if err := f.walk(int64(binary.BigEndian.Uint32(data[cell:])), depth+1, seen, each); err != nil {
				return err
			}
		}
	}
	if kind == interiorPage {
		return f.walk(int64(binary.BigEndian.Uint32(data[at+8:])), depth+1, seen, each)
	}
	return nil
}

// Kinds of pages of tables.
const (
	interiorPage = 0x05
	leafPage     = 0x0d
)

// cell returns the row id and the record of a row, of which the part that does not fit on a page is on overflow pages.
func (f *sqliteFile) cell(data []byte) (id int64, record []byte, err error) {
	size, n := varint(data)
	rowID, m := varint(data[n:])
	if n == 0 || m == 0 || size < 0 || size > maxRow {
		return 0, nil, errDamaged
	}
	if f.read += size; f.read > f.pages*f.pageSize { // rows do not share bytes
		return 0, nil, errDamaged
	}
	data = data[n+m:]
	local := size
	if most := f.usable - 35; size > most {
		least := (f.usable-12)*32/255 - 23
		if local = least + (size-least)%(f.usable-4); local > most {
			local = least
		}
	}
	if local > int64(len(data)) {
		return 0, nil, errDamaged
	}
	if local == size {
		return rowID, data[:size], nil
	}
	if local+4 > int64(len(data)) {
		return 0, nil, errDamaged
	}
	record = append(make([]byte, 0, size), data[:local]...)
	for next := int64(binary.BigEndian.Uint32(data[local:])); int64(len(record)) < size; {
		more, err := f.page(next)
		if err != nil {
			return 0, nil, err
		}
		next = int64(binary.BigEndian.Uint32(more))
		record = append(record, more[4:min(f.usable, 4+size-int64(len(record)))]...)
	}
	return rowID, record, nil
}

// varint reads a number of 1 to 9 bytes; n is 0 if there is no valid number.
func varint(data []byte) (v int64, n int) {
	for i := range min(len(data), 9) {
		if i == 8 {
			return v<<8 | int64(data[i]), 9
		}
		if v = v<<7 | int64(data[i]&0x7f); data[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}

// intSizes are the bytes of whole numbers, by their type.
var intSizes = [...]int64{0, 1, 2, 3, 4, 6, 8}

// record returns the values of a row.
func (f *sqliteFile) record(data []byte) (values []any, err error) {
	size, n := varint(data)
	if n == 0 || size < int64(n) || size > int64(len(data)) {
		return nil, errDamaged
	}
	types, body := data[n:size], data[size:]
	for len(types) > 0 {
		kind, n := varint(types)
		if n == 0 || kind < 0 {
			return nil, errDamaged
		}
		types = types[n:]
		var value any
		length := int64(0)
		switch {
		case kind == 0:
		case kind <= 6:
			length = intSizes[kind]
		case kind == 7:
			length = 8
		case kind == 8, kind == 9:
			value = kind - 8
		case kind >= 12:
			length = (kind - 12) / 2
		default:
			return nil, errDamaged
		}
		if length > int64(len(body)) {
			return nil, errDamaged
		}
		switch field := body[:length]; {
		case kind >= 1 && kind <= 6:
			v := int64(int8(field[0]))
			for _, b := range field[1:] {
				v = v<<8 | int64(b)
			}
			value = v
		case kind == 7:
			value = math.Float64frombits(binary.BigEndian.Uint64(field))
		case kind >= 12 && kind%2 == 0:
			value = field
		case kind >= 13:
			value = f.string(field)
		}
		values, body = append(values, value), body[length:]
	}
	return values, nil
}

// string reads a text in the file's encoding.
func (f *sqliteFile) string(data []byte) string {
	if f.text == nil {
		return string(data)
	}
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = f.text.Uint16(data[2*i:])
	}
	return string(utf16.Decode(units))
}
