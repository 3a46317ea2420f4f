// Command patchruntime finishes libmemtrace.so after the linker: it takes the relocations of the sleeping Go half away
// from the loader.
//
//	patchruntime FILE
//
// A Go shared object has thousands of relative relocations, and the loader would apply them, page after page, in every
// process that the library is preloaded into, though hardly any of those processes ever runs Go. patchruntime sorts the
// table so that those of Go's own data sections come last, shortens the table that the loader sees, and passes the
// place of the rest to the C half (section mt_lazy_rela, struct mt_lazy_rela in cshim/process/relocate.c), which
// applies it before it starts the runtime. The linker script keeps the C half's own data out of these sections.
//
// It also keeps the runtime away from the program's signals (signals.go) and from ending the process (ends.go). The C
// half never starts the Go half of a library that was not treated.
package main

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// lazySections hold nothing but Go's data: see interpose/lazy.ld.
var lazySections = []string{".data.rel.ro", ".data", ".noptrdata"}

const (
	tableSection = ".rela.dyn"
	noteSection  = "mt_lazy_rela"
	entrySize    = 24 // Elf64_Rela: offset, info, addend
	noteSize     = 32 // struct mt_lazy_rela: four words
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: patchruntime FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "patchruntime: %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func run(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	file, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := quietSignals(data, file); err != nil {
		return fmt.Errorf("keep Go off the program's signals: %w", err)
	}
	if err := outliveGo(data, file); err != nil {
		return fmt.Errorf("keep Go from ending the process: %w", err)
	}
	if err := deferGo(data, file); err != nil {
		return err
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, st.Mode().Perm())
}

// deferGo rewrites the relocation table, the dynamic section and the note inside data, which is the whole file.
func deferGo(data []byte, file *elf.File) error {
	relative, ok := map[elf.Machine]uint32{elf.EM_X86_64: uint32(elf.R_X86_64_RELATIVE),
		elf.EM_AARCH64: uint32(elf.R_AARCH64_RELATIVE)}[file.Machine]
	if !ok {
		return fmt.Errorf("machine %v is not known", file.Machine)
	}
	table, note := file.Section(tableSection), file.Section(noteSection)
	if table == nil || note == nil || note.Size < noteSize {
		return fmt.Errorf("no section %s or %s", tableSection, noteSection)
	}
	if table.Size%entrySize != 0 || table.Offset+table.Size > uint64(len(data)) ||
		note.Offset+note.Size > uint64(len(data)) {
		return errors.New("a section reaches beyond the file")
	}
	raw := data[table.Offset : table.Offset+table.Size]
	var early, symbolic, lazy []byte
	for at := 0; at < len(raw); at += entrySize {
		entry := raw[at : at+entrySize]
		switch kind := binary.LittleEndian.Uint32(entry[8:]); {
		case kind != relative:
			symbolic = append(symbolic, entry...)
		case inLazySection(file, binary.LittleEndian.Uint64(entry)):
			lazy = append(lazy, entry...)
		default:
			early = append(early, entry...)
		}
	}
	if len(lazy) == 0 {
		return errors.New("nothing to defer: was it treated before?")
	}
	copy(raw, append(append(append([]byte(nil), early...), symbolic...), lazy...))
	if err := shorten(data, file, uint64(len(early)+len(symbolic)), uint64(len(early)/entrySize)); err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(data[note.Offset:], table.Addr+uint64(len(early)+len(symbolic)))
	binary.LittleEndian.PutUint64(data[note.Offset+8:], uint64(len(lazy)/entrySize))
	fmt.Fprintf(os.Stderr, "patchruntime: %d relocations stay, %d wait for the runtime's start\n",
		(len(early)+len(symbolic))/entrySize, len(lazy)/entrySize)
	return nil
}

func inLazySection(file *elf.File, addr uint64) bool {
	for _, name := range lazySections {
		if s := file.Section(name); s != nil && addr >= s.Addr && addr < s.Addr+s.Size {
			return true
		}
	}
	return false
}

// shorten states the size of the loader's part of the table, in bytes, and how many relative relocations it begins
// with.
func shorten(data []byte, file *elf.File, size, relatives uint64) error {
	dynamic := file.Section(".dynamic")
	if dynamic == nil || dynamic.Offset+dynamic.Size > uint64(len(data)) {
		return errors.New("no dynamic section")
	}
	found := 0
	for at := dynamic.Offset; at+16 <= dynamic.Offset+dynamic.Size; at += 16 {
		switch elf.DynTag(binary.LittleEndian.Uint64(data[at:])) {
		case elf.DT_RELASZ:
			binary.LittleEndian.PutUint64(data[at+8:], size)
			found++
		case elf.DT_RELACOUNT:
			binary.LittleEndian.PutUint64(data[at+8:], relatives)
			found++
		}
	}
	if found != 2 {
		return errors.New("the dynamic section does not state DT_RELASZ and DT_RELACOUNT")
	}
	return nil
}
