package attach

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"memtrace/internal/safefile"
)

// The functions below replace calls in the thread: each call costs it another time slice, for which it waits on a busy
// machine.

// errnoLoad and errnoAdd are __errno_location of glibc on x86-64, after an optional endbr64: they add a word of the
// library's to the thread pointer.
//
//	48 8b 05 xx xx xx xx           mov   offset(%rip), %rax
//	64 48 03 04 25 00 00 00 00     add   %fs:0, %rax
//	c3                             ret
var (
	endbr     = []byte{0xf3, 0x0f, 0x1e, 0xfa}
	errnoLoad = []byte{0x48, 0x8b, 0x05}
	errnoAdd  = []byte{0x64, 0x48, 0x03, 0x04, 0x25, 0, 0, 0, 0, 0xc3}
)

// errnoWord returns the address of the word that errnoAdd adds; ok is false for another function.
func errnoWord(code []byte, at uint64) (word uint64, ok bool) {
	short := bytes.TrimPrefix(code, endbr)
	at += uint64(len(code) - len(short))
	const load = 7 // bytes of the first instruction
	if len(short) < load+len(errnoAdd) || !bytes.HasPrefix(short, errnoLoad) ||
		!bytes.HasPrefix(short[load:], errnoAdd) {
		return 0, false
	}
	offset := int32(binary.LittleEndian.Uint32(short[len(errnoLoad):]))
	return at + load + uint64(int64(offset)), true
}

// errnoOf returns the address of the thread's error number.
func (t *target) errnoOf(s *stopped) (uint64, error) {
	if code, err := s.peek(uintptr(t.loader.errno), len(endbr)+7+len(errnoAdd)); err == nil {
		if word, ok := errnoWord(code, t.loader.errno); ok {
			if offset, err := s.peek(uintptr(word), 8); err == nil {
				return s.threadPointer() + binary.LittleEndian.Uint64(offset), nil
			}
		}
	}
	return s.call(t.loader.errno)
}

// exported is a function of a library's file: its offset from the library's base, and that of the dynamic section.
type exported struct{ function, dynamic uint64 }

// largestLibrary is what is read of a library in bytes.
const largestLibrary = 256 << 20

// export looks a function up in a library's file; nil if that cannot be done. It reads all of it, so that no thread is
// stopped until a disk or the network has sent it.
func (t *target) export(library, function string) *exported {
	data, err := safefile.Read(filepath.Join(t.proc, "root", library), largestLibrary)
	if err != nil {
		return nil
	}
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return nil
	}
	var e exported
	for _, p := range file.Progs {
		if p.Type == elf.PT_DYNAMIC {
			e.dynamic = p.Vaddr
		}
	}
	for _, s := range symbols {
		if s.Name == function && s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			e.function = s.Value
		}
	}
	if e.function == 0 || e.dynamic == 0 {
		return nil
	}
	return &e
}

// address returns the address of the function in the process. A handle of glibc's is the library's entry in the
// loader's list (struct link_map): its base, its name, and the address of the dynamic section. ok is false if it
// differs.
func (e *exported) address(s *stopped, handle uint64) (address uint64, ok bool) {
	if e == nil {
		return 0, false
	}
	entry, err := s.peek(uintptr(handle), 24)
	if err != nil {
		return 0, false
	}
	base, dynamic := binary.LittleEndian.Uint64(entry), binary.LittleEndian.Uint64(entry[16:])
	return base + e.function, dynamic == base+e.dynamic
}

// raisePriority raises a thread that another one depends on to the highest priority, where permitted, and returns a
// function that restores it, once.
func raisePriority(tid int) (restore func()) {
	const none = 20 // the kernel returns this minus the nice value, so that the result is not an error number
	before, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
	if err != nil || unix.Setpriority(unix.PRIO_PROCESS, tid, highest) != nil {
		return func() {}
	}
	return sync.OnceFunc(func() { _ = unix.Setpriority(unix.PRIO_PROCESS, tid, none-before) })
}
