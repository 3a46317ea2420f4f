package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// The Go runtime's table of signals: one {flags int32; name string} each. The flags determine which signals the runtime
// takes over at its start, for which handlers it adds SA_ONSTACK, and which it unblocks on every thread of its own. In
// the traced process it must not handle any of them: a handler of the program that ran on a goroutine's stack of two
// kilobytes would write over its neighbours. With zero flags it leaves dispositions alone and unblocks nothing.
const (
	signalEntrySize  = 24
	signalNameOffset = 8
	signalCount      = 65
	firstSignalName  = "SIGNONE: no trap"
)

// signalNames are some names by number, to know the table by.
var signalNames = map[int]string{0: firstSignalName, 11: "SIGSEGV: ", 17: "SIGCHLD: ", 27: "SIGPROF: ", 31: "SIGSYS: ",
	64: "signal 64"}

// keptSignals are the C library's own, which it sends to every thread in setuid() and pthread_cancel() and waits for:
// the runtime must let them in, on a stack that is large enough.
var keptSignals = []int{32, 33}

// quietSignals clears the flags inside data, which is the whole file, and notes that it did, in the third word of the
// note.
func quietSignals(data []byte, file *elf.File) error {
	note, names := file.Section(noteSection), file.Section(".rodata")
	if note == nil || note.Size < noteSize || note.Offset+note.Size > uint64(len(data)) || names == nil ||
		names.Offset+names.Size > uint64(len(data)) {
		return fmt.Errorf("no section %s of four words, or no .rodata", noteSection)
	}
	pointers, err := relativePointers(data, file)
	if err != nil {
		return err
	}
	table, err := findSignals(data, file, names, pointers)
	if err != nil {
		return err
	}
	for i := range signalCount {
		if !slices.Contains(keptSignals, i) {
			binary.LittleEndian.PutUint32(data[table+signalEntrySize*i:], 0)
		}
	}
	binary.LittleEndian.PutUint64(data[note.Offset+16:], 1)
	return nil
}

// relativePointers maps the address of a pointer to the address that it points to.
func relativePointers(data []byte, file *elf.File) (map[uint64]uint64, error) {
	table := file.Section(tableSection)
	if table == nil || table.Size%entrySize != 0 || table.Offset+table.Size > uint64(len(data)) {
		return nil, fmt.Errorf("no section %s", tableSection)
	}
	pointers := map[uint64]uint64{}
	for raw := data[table.Offset : table.Offset+table.Size]; len(raw) > 0; raw = raw[entrySize:] {
		pointers[binary.LittleEndian.Uint64(raw)] = binary.LittleEndian.Uint64(raw[16:])
	}
	return pointers, nil
}

// findSignals returns the offset in the file of the one table whose entries have the expected names.
func findSignals(data []byte, file *elf.File, names *elf.Section, pointers map[uint64]uint64) (int, error) {
	text := data[names.Offset : names.Offset+names.Size]
	var found []int
	for at, target := range pointers {
		if target < names.Addr || target-names.Addr >= names.Size ||
			!bytes.HasPrefix(text[target-names.Addr:], []byte(firstSignalName)) {
			continue
		}
		if off, ok := fileOffset(file, at-signalNameOffset); ok &&
			isSignalTable(data, names, pointers, at-signalNameOffset, off) {
			found = append(found, off)
		}
	}
	if len(found) != 1 {
		return 0, fmt.Errorf("the Go runtime's table of signals was found %d times, not once: has its layout changed?",
			len(found))
	}
	return found[0], nil
}

func isSignalTable(data []byte, names *elf.Section, pointers map[uint64]uint64, addr uint64, off int) bool {
	if off+signalCount*signalEntrySize > len(data) {
		return false
	}
	for i, want := range signalNames {
		entry := data[off+i*signalEntrySize:]
		target, length := pointers[addr+uint64(i*signalEntrySize)+signalNameOffset],
			binary.LittleEndian.Uint64(entry[16:])
		if target < names.Addr || length > 64 || target-names.Addr+length > names.Size {
			return false
		}
		name := data[names.Offset+target-names.Addr:][:length]
		if !strings.HasPrefix(string(name), want) {
			return false
		}
	}
	return true
}

func fileOffset(file *elf.File, addr uint64) (int, bool) {
	for _, s := range file.Sections {
		if s.Type == elf.SHT_PROGBITS && s.Flags&elf.SHF_ALLOC != 0 && addr >= s.Addr && addr < s.Addr+s.Size {
			return int(s.Offset + addr - s.Addr), true
		}
	}
	return 0, false
}
