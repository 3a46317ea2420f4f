package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// CodeID names a Python code object.
type CodeID uint32

// LineTable says how a code object's line table is written. Numbers are append-only and are written to disk.
type LineTable uint8

// The kinds of line tables.
const (
	LinesNone      LineTable = 0 // there is none
	LinesLnotab    LineTable = 1 // CPython to 3.9: co_lnotab
	LinesRanges    LineTable = 2 // CPython 3.10: co_linetable of pairs
	LinesLocations LineTable = 3 // CPython from 3.11: co_linetable of location entries
)

var lineTableNames = [...]string{"none", "lnotab", "ranges", "locations"}

// String returns the kind's name as it appears in the text form, or its number where this version has no name for it.
func (l LineTable) String() string {
	if int(l) < len(lineTableNames) {
		return lineTableNames[l]
	}
	return strconv.Itoa(int(l))
}

// ParseLineTable is the inverse of String.
func ParseLineTable(s string) (LineTable, bool) {
	if i := slices.Index(lineTableNames[:], s); i >= 0 {
		return LineTable(i), true
	}
	n, err := strconv.ParseUint(s, 0, 8)
	return LineTable(n), err == nil
}

// Code is a Python code object.
type Code struct {
	ID             CodeID
	Name, QualName string // QualName is empty before CPython 3.11
	File           string
	FirstLine      int32
	Table          LineTable
	Lines          []byte // as Python keeps it
	ModuleCall     bool   // its first argument is the module that is called
}

// codeModuleCall is the flag of an entry whose code calls a framework's modules.
const codeModuleCall = 1

func (e *entryEncoder) appendCode(dst []byte, c Code) []byte {
	body := binary.AppendUvarint(e.body[:0], uint64(c.ID))
	body = binary.AppendUvarint(body, zigzag(int64(c.FirstLine)))
	body = binary.AppendUvarint(body, uint64(c.Table))
	flags := uint64(0)
	if c.ModuleCall {
		flags = codeModuleCall
	}
	body = binary.AppendUvarint(body, flags)
	body = appendText(appendText(appendText(body, c.Name), c.QualName), c.File)
	body = binary.AppendUvarint(body, uint64(len(c.Lines)))
	return e.finish(dst, entryCode, append(body, c.Lines...))
}

func (e *entryDecoder) code(d *decoder) {
	c := Code{ID: CodeID(d.id())}
	line := unzigzag(d.uvarint())
	c.FirstLine, c.Table = int32(line), LineTable(d.octet())
	c.ModuleCall = d.uvarint()&codeModuleCall != 0
	c.Name, c.QualName, c.File = d.text(MaxString), d.text(MaxString), d.text(MaxString)
	n := d.uvarint()
	if n > MaxLineTable || int64(c.FirstLine) != line {
		d.fail()
	}
	c.Lines = d.bytes(n)
	if !d.failed {
		e.tables.AddCode(c)
	}
}

// WriteCode defines a Python code object.
func (w *Writer) WriteCode(c Code) error {
	if err := errors.Join(w.usable(), tooLong("name or file of a Python code object", c.Name, c.QualName, c.File)); err != nil {
		return err
	}
	if len(c.Lines) > MaxLineTable {
		return fmt.Errorf("write trace: line table of %d bytes, at most %d are allowed", len(c.Lines), MaxLineTable)
	}
	return w.entryAdded(w.entries.appendCode(w.dictionary, c))
}
