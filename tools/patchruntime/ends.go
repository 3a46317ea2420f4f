package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
)

// Where the Go runtime gives up, it ends the process: as a library by SIGABRT, else by exit_group, or, where not even
// that can be done in order, by an instruction that faults. In the traced process a fault of the recorder may end the
// recording and nothing else, so the beginnings of these functions become a jump to mt_go_ended
// (cshim/process/goend.c), which keeps the thread for ever.
//
// The functions are written in assembler and known by their code, since the library has no symbols; one that is not
// found exactly once ends the build.
type ending struct {
	name string
	code []byte
}

// functionAlign is how functions in assembler are laid out; runtime.exitThread ends like runtime.abort, and is not what
// is looked for.
const functionAlign = 16

var endings = map[elf.Machine][]ending{
	elf.EM_X86_64: {
		// mov 8(sp), edi; mov 231, eax; syscall; ret
		{"runtime.exit", []byte{0x8b, 0x7c, 0x24, 0x08, 0xb8, 0xe7, 0, 0, 0, 0x0f, 0x05, 0xc3}},
		// mov 39, eax; syscall; mov eax, r12d; mov 186, eax; syscall; mov eax, esi; mov r12d, edi; mov 8(sp), edx
		{"runtime.raise", []byte{0xb8, 0x27, 0, 0, 0, 0x0f, 0x05, 0x41, 0x89, 0xc4, 0xb8, 0xba, 0, 0, 0, 0x0f, 0x05,
			0x89, 0xc6, 0x44, 0x89, 0xe7, 0x8b, 0x54, 0x24, 0x08}},
		{"runtime.abort", []byte{0xcd, 0x03, 0xeb, 0xfe, 0xcc}}, // int 3; jmp to itself; what fills up
	},
	elf.EM_AARCH64: {
		// ldrsw x0, 8(sp); mov x8, 94; svc; ret
		{"runtime.exit", []byte{0xe0, 0x0b, 0x80, 0xb9, 0xc8, 0x0b, 0x80, 0xd2, 0x01, 0, 0, 0xd4, 0xc0, 0x03,
			0x5f, 0xd6}},
		// mov x8, 172; svc; sxtw x19, w0; mov x8, 178; svc; sxtw x1, w0
		{"runtime.raise", []byte{0x88, 0x15, 0x80, 0xd2, 0x01, 0, 0, 0xd4, 0x13, 0x7c, 0x40, 0x93, 0x48, 0x16, 0x80,
			0xd2, 0x01, 0, 0, 0xd4, 0x01, 0x7c, 0x40, 0x93}},
		// mov x0, 0; ldr x0, (x0); undefined
		{"runtime.abort", []byte{0xe0, 0x03, 0x1f, 0xaa, 0, 0, 0x40, 0xf9, 0, 0, 0, 0}},
	},
}

// endedField is where the note has the address of mt_go_ended.
const endedField = 24

// outliveGo rewrites these functions inside data, which is the whole file.
func outliveGo(data []byte, file *elf.File) error {
	text, note := file.Section(".text"), file.Section(noteSection)
	if text == nil || text.Offset+text.Size > uint64(len(data)) || note == nil {
		return errors.New("no section .text")
	}
	pointers, err := relativePointers(data, file)
	if err != nil {
		return err
	}
	target, ok := pointers[note.Addr+endedField]
	if !ok || target < text.Addr || target-text.Addr >= text.Size {
		return errors.New("the note does not say where to")
	}
	code := data[text.Offset : text.Offset+text.Size]
	for _, e := range endings[file.Machine] {
		at, err := findCode(code, text.Addr, e)
		if err != nil {
			return err
		}
		jump, err := jumpTo(file.Machine, int64(target)-int64(text.Addr)-int64(at))
		if err != nil {
			return err
		}
		copy(code[at:], jump)
	}
	return nil
}

// findCode returns the offset in the code, which begins at an address, of the one function that begins like this.
func findCode(code []byte, start uint64, e ending) (int, error) {
	found := -1
	for at := 0; ; {
		next := bytes.Index(code[at:], e.code)
		if next < 0 {
			break
		}
		at += next
		if (start+uint64(at))%functionAlign == 0 {
			if found >= 0 {
				return 0, fmt.Errorf("%s was found twice: has its code changed?", e.name)
			}
			found = at
		}
		at++
	}
	if found < 0 {
		return 0, fmt.Errorf("%s was not found: has its code changed?", e.name)
	}
	return found, nil
}

// jumpTo returns the instruction that jumps so far from its own beginning.
func jumpTo(machine elf.Machine, distance int64) ([]byte, error) {
	switch machine {
	case elf.EM_X86_64:
		const size = 5
		if distance-size != int64(int32(distance-size)) {
			return nil, errors.New("a jump does not reach that far")
		}
		return binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(distance-size)), nil
	case elf.EM_AARCH64:
		if distance%4 != 0 || distance < -1<<27 || distance >= 1<<27 {
			return nil, errors.New("a jump does not reach that far")
		}
		return binary.LittleEndian.AppendUint32(nil, 0x14000000|uint32(distance>>2)&0x3ffffff), nil
	}
	return nil, fmt.Errorf("machine %v is not known", machine)
}
