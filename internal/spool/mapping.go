package spool

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// growth is the step in which the drainer's mapping grows, so that the file need not be mapped again each time that
	// the recorder extends it a little.
	growth = 64 << 20
)

// mapFile maps the file, which has that many bytes. The mapping may extend past the file's end, but data does not: an
// access there would end the process.
func (s *Spool) mapFile(size uint64) error {
	length, protection := size, unix.PROT_READ
	if s.writable {
		protection |= unix.PROT_WRITE
	}
	if s.mapped != nil && s.writable {
		length = (size + growth - 1) / growth * growth
	}
	mapped, err := mapUnlocked(int(s.opened.Fd()), int(length), protection)
	if err != nil {
		return fmt.Errorf("map %s: %w", s.name, err)
	}
	unix.Madvise(mapped, unix.MADV_RANDOM) // holes are not worth reading ahead, and there are many
	s.unmap()
	s.mapped, s.data = mapped, mapped[:size]
	return nil
}

// mapUnlocked maps a file. In a program that has all its memory locked, what is mapped later included (mlockall), each
// page of it would be read at once; what cannot be touched yet is not.
func mapUnlocked(fd, length, protection int) ([]byte, error) {
	mapped, err := unix.Mmap(fd, 0, length, unix.PROT_NONE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	if someLocked() { // else a filter that knows no such call (systemd's SystemCallFilter=~@memlock) may kill over it
		unix.Munlock(mapped)
	}
	if err := unix.Mprotect(mapped, protection); err != nil {
		unix.Munmap(mapped)
		return nil, err
	}
	return mapped, nil
}

// someLocked reports whether the process has locked some of its memory.
func someLocked() bool {
	status, err := os.ReadFile("/proc/thread-self/status")
	return err == nil && !bytes.Contains(status, []byte("\nVmLck:\t       0 kB\n"))
}

func (s *Spool) unmap() error {
	mapped := s.mapped
	s.mapped, s.data = nil, nil
	if mapped == nil {
		return nil
	}
	return unix.Munmap(mapped)
}

// Unreadable returns why a part of the file that is in use cannot be read; nil while all of it can. A drainer that goes
// on regardless loses what is there.
func (s *Spool) Unreadable() error { return s.unreadable }

// follow reads how far the recorder has grown the file, where it uses segments that were not there before. A file that
// cannot be mapped further is read as far as it is, and Unreadable reports that from then on.
func (s *Spool) follow() {
	used := min(s.data.load32(offSegmentsUsed), s.segmentsPlanned)
	if used <= s.segmentsMax || s.opened == nil {
		return
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(s.opened.Fd()), &st); err != nil || st.Size <= int64(len(s.data)) || st.Size > maxSize {
		return
	}
	if size := uint64(st.Size); size <= uint64(len(s.mapped)) {
		s.data = s.mapped[:size]
	} else if err := s.mapFile(size); err != nil {
		s.unreadable = err
		return
	}
	s.segmentsMax = min(s.segmentsPlanned, s.data.room(s.segmentsOffset, segmentSize))
}
