package symbol

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
)

const (
	symbolBytes   = 24      // of one entry of an ELF64 symbol table
	maxSymbols    = 8 << 20 // functions of one table: the largest programs have about 2 million
	maxSymbolName = 64 << 10
)

// symbolTable is the functions of one ELF symbol table. Names stay in the file until they are requested: they are many
// times larger than the rest.
type symbolTable struct {
	entries []function // by start
	reach   []uint64   // reach[i] is the highest end among entries[:i+1]: the bound of a backward search
	names   io.ReaderAt
}

// function is one symbol. Its end is unknown (size 0) for some that are written in assembly language.
type function struct {
	start, size uint64
	name        uint32 // offset into the table of names
	rank        uint8  // lower is the better name among those of one address
}

// readSymbols reads a table (SHT_SYMTAB or SHT_DYNSYM). A file without it gives errNoSection.
func (im *image) readSymbols(kind elf.SectionType) (*symbolTable, error) {
	section := im.elf.SectionByType(kind)
	if section == nil || section.Size == 0 || section.Flags&elf.SHF_COMPRESSED != 0 {
		return nil, errNoSection
	}
	if section.Link == 0 || int(section.Link) >= len(im.elf.Sections) {
		return nil, fmt.Errorf("%s names no table of strings", section.Name)
	}
	if section.Offset > uint64(im.size) || section.Size > uint64(im.size)-section.Offset {
		return nil, fmt.Errorf("%s reaches beyond the end of the file", section.Name)
	}
	names := im.elf.Sections[section.Link]
	t := &symbolTable{names: io.NewSectionReader(im.file, int64(names.Offset), int64(min(names.Size, uint64(im.size))))}
	if err := t.read(im, section); err != nil {
		return nil, fmt.Errorf("%s: %w", section.Name, err)
	}
	t.sort()
	return t, nil
}

func (t *symbolTable) read(im *image, section *elf.Section) error {
	executable := make([]bool, len(im.elf.Sections))
	for i, s := range im.elf.Sections {
		executable[i] = s.Flags&elf.SHF_EXECINSTR != 0
	}
	const batch = 32 << 10
	left := section.Size / symbolBytes
	t.entries = make([]function, 0, min(left, maxSymbols)) // most symbols of a library are functions
	buffer := make([]byte, min(left, batch)*symbolBytes)
	order := im.elf.ByteOrder
	for at := int64(section.Offset); left > 0; {
		n := min(left, batch) * symbolBytes
		if _, err := im.file.ReadAt(buffer[:n], at); err != nil {
			return err
		}
		for b := buffer[:n]; len(b) > 0; b = b[symbolBytes:] {
			index := order.Uint16(b[6:])
			f := function{name: order.Uint32(b), start: order.Uint64(b[8:]), size: order.Uint64(b[16:])}
			rank, isCode := symbolRank(b[4])
			if !isCode || int(index) >= len(executable) || !executable[index] || f.start+f.size < f.start {
				continue
			}
			if len(t.entries) >= maxSymbols {
				return fmt.Errorf("more than %d functions: %w", maxSymbols, errTooLarge)
			}
			f.rank = rank
			t.entries = append(t.entries, f)
		}
		at += int64(n)
		left -= n / symbolBytes
	}
	return nil
}

// symbolRank orders the names of one address: global before weak before local; labels in code that are not functions
// are last.
func symbolRank(info byte) (rank uint8, isCode bool) {
	switch elf.ST_BIND(info) {
	case elf.STB_GLOBAL, elf.STB_LOOS: // the latter: STB_GNU_UNIQUE
	case elf.STB_WEAK:
		rank = 1
	default:
		rank = 2
	}
	switch elf.ST_TYPE(info) {
	case elf.STT_FUNC, elf.STT_GNU_IFUNC:
		return rank, true
	case elf.STT_NOTYPE:
		return rank + 3, true
	}
	return 0, false
}

func (t *symbolTable) sort() {
	slices.SortFunc(t.entries, func(a, b function) int {
		if a.start != b.start {
			return cmp.Compare(a.start, b.start)
		}
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.name, b.name))
	})
	t.entries = slices.Clip(t.entries)
	t.reach = make([]uint64, len(t.entries))
	highest := uint64(0)
	for i, f := range t.entries {
		highest = max(highest, f.start+f.size)
		t.reach[i] = highest
	}
}

// at returns the innermost function that covers an address, by its best name. bounds is the function's range in the
// unwind table, for symbols without a size.
func (t *symbolTable) at(address uint64, bounds span) (name string, where span, ok bool) {
	after := sort.Search(len(t.entries), func(i int) bool { return t.entries[i].start > address })
	for i := after - 1; i >= 0 && t.reach[i] > address; i-- {
		if f := t.entries[i]; address < f.start+f.size {
			where = span{f.start, f.start + f.size}
			return t.bestName(f.start, func(f function) bool { return address < f.start+f.size }), where, true
		}
	}
	for i := after - 1; i >= 0 && bounds.contains(t.entries[i].start); i-- {
		if f := t.entries[i]; f.size == 0 {
			return t.bestName(f.start, func(f function) bool { return f.size == 0 }), span{f.start, bounds.end}, true
		}
	}
	return "", span{}, false
}

// bestName chooses among the names of the functions that start at an address.
func (t *symbolTable) bestName(start uint64, fits func(function) bool) string {
	first := sort.Search(len(t.entries), func(i int) bool { return t.entries[i].start >= start })
	best, rank := "", uint8(255)
	for _, f := range t.entries[first:] {
		if f.start != start || f.rank > rank {
			break
		}
		name, err := t.name(f.name)
		if !fits(f) || err != nil || name == "" {
			continue
		}
		if best == "" || len(name) < len(best) || len(name) == len(best) && name < best {
			best, rank = name, f.rank
		}
	}
	return best
}

// name reads a name, without the version that some have after an @.
func (t *symbolTable) name(offset uint32) (string, error) {
	for size := 256; ; size *= 4 {
		piece := make([]byte, size)
		n, err := t.names.ReadAt(piece, int64(offset))
		if end := slices.Index(piece[:n], 0); end >= 0 {
			name, _, _ := strings.Cut(string(piece[:end]), "@")
			return name, nil
		}
		if err != nil {
			return "", err
		}
		if size >= maxSymbolName {
			return "", errors.New("a name without an end")
		}
	}
}
