// Package spool reads what the recording half of memtrace writes: a mapped file of per-thread rings and an append-only
// dictionary (cshim/spool.h). It is the only reader of that layout and has three callers: the drainer inside the traced
// process, `memtrace run` after the process has died, and `memtrace report` on what a killed process left.
//
// Invariants
//
//  1. Nothing in the file is trusted: every offset is checked against the mapping. Otherwise a damaged file would take
//     down a drainer that lives in a user's training run.
//  2. A record exists once its sequence number is stored, which the recorder does last. Otherwise a kill could show
//     half of one.
//  3. The reader publishes how far it has read only after the events are in the trace file. Otherwise a kill in between
//     would lose them; this way it can only show them twice, and sequence numbers show it.
package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"memtrace/internal/safefile"
)

// Errors that callers distinguish.
var (
	ErrNotSpool = errors.New("not a memtrace spool")
	ErrVersion  = errors.New("spool of another memtrace build")
)

// Spool is a mapped spool file. Methods are for one goroutine.
type Spool struct {
	data       image // what is there of the file
	opened     *os.File
	unreadable error  // why a part that is in use could not be mapped
	mapped     []byte // data, and where the spool is drained what the file may grow into
	writable   bool
	name       string // base name of the file, links resolved
	file       safefile.Identity

	committed uint64 // the highest number of a record, where the header's is lower; else 0

	ringsMax, indexMax, segmentsMax                               uint32
	segmentsPlanned                                               uint32 // as many as the file may grow to
	ringsOffset, indexOffset, dataOffset, dataMax, segmentsOffset uint64
}

// maxSize bounds a spool file, in bytes.
const maxSize = 1 << 40

// Open maps the spool at path; writable for what plays its drainer, read-only for everyone else. The errors are
// ErrNotSpool and ErrVersion, wrapped, or the system's.
func Open(path string, writable bool) (*Spool, error) {
	file, err := safefile.OpenUpTo(path, maxSize)
	if err == nil && writable {
		file, err = reopen(file)
	}
	if err != nil {
		return nil, err
	}
	return open(path, file, writable)
}

// reopen opens the file that is open for reading once more, for writing.
func reopen(file *os.File) (*os.File, error) {
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return safefile.OpenToWrite(file.Name(), os.O_RDWR, safefile.IdentityOf(st))
}

// OpenOwn maps the spool that its process made, for its drainer: path without links, and own to detect a file that has
// replaced it.
func OpenOwn(path string, own safefile.Identity) (*Spool, error) {
	file, err := safefile.OpenToWrite(path, os.O_RDWR, own)
	if err != nil {
		return nil, err
	}
	return open(path, file, true)
}

// open maps a file, which it takes over.
func open(path string, file *os.File, writable bool) (*Spool, error) {
	s := &Spool{opened: file, name: filepath.Base(path), writable: writable}
	info, err := file.Stat()
	if err == nil && (info.Size() < pageSize || info.Size() > maxSize) {
		err = fmt.Errorf("%s: %w (%d bytes)", path, ErrNotSpool, info.Size())
	}
	if err == nil {
		s.file = safefile.IdentityOf(info)
		err = s.mapFile(uint64(info.Size()))
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		s.name = filepath.Base(real)
	}
	if err := s.readHeader(); err != nil {
		s.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Close unmaps the file.
func (s *Spool) Close() error {
	err := s.unmap()
	if s.opened != nil {
		err = errors.Join(err, s.opened.Close())
		s.opened = nil
	}
	return err
}

func (s *Spool) readHeader() error {
	if string(s.data[:len(magic)]) != magic {
		return ErrNotSpool
	}
	if v := s.data.u32(offVersion); v != layoutVersion || s.data.u32(offRecordSize) != recordSize ||
		s.data.u32(offSegmentSize) != segmentSize {
		return fmt.Errorf("%w: layout %d, this build reads %d; use the memtrace command that came with the library",
			ErrVersion, v, layoutVersion)
	}
	s.ringsMax, s.indexMax = s.data.u32(offRingsMax), s.data.u32(offIndexMax)
	s.segmentsPlanned, s.segmentsOffset = s.data.u32(offSegmentsMax), s.data.u64(offSegmentsOffset)
	s.ringsOffset, s.indexOffset = s.data.u64(offRingsOffset), s.data.u64(offIndexOffset)
	s.dataOffset, s.dataMax = s.data.u64(offDataOffset), s.data.u64(offDataMax)
	parts := []struct{ start, size uint64 }{
		{s.ringsOffset, uint64(s.ringsMax) * ringSize},
		{s.indexOffset, uint64(s.indexMax) * indexEntrySize},
		{s.dataOffset, s.dataMax},
		{s.segmentsOffset, uint64(s.segmentsPlanned) * segmentSize},
	}
	end := uint64(pageSize)
	for _, p := range parts {
		if p.start%8 != 0 || p.start < end || p.size > 1<<40 {
			return fmt.Errorf("%w: its header is damaged", ErrNotSpool)
		}
		end = p.start + p.size
	}
	// Loops are bounded by the file's size, not by its fields.
	s.ringsMax = min(s.ringsMax, s.data.room(s.ringsOffset, ringSize))
	s.indexMax = min(s.indexMax, s.data.room(s.indexOffset, indexEntrySize))
	s.segmentsMax = min(s.segmentsPlanned, s.data.room(s.segmentsOffset, segmentSize))
	return nil
}

func (s *Spool) ringOffset(i uint32) uint64 { return s.ringsOffset + uint64(i)*ringSize }

// segmentOffset returns where segment number (1-based) begins, ok=false for a number outside the file.
func (s *Spool) segmentOffset(number uint32) (off uint64, ok bool) {
	if number == 0 || number > s.segmentsMax {
		return 0, false
	}
	off = s.segmentsOffset + uint64(number-1)*segmentSize
	return off, s.data.in(off, segmentSize)
}

// ringsUsed returns how many ring descriptors may hold something.
func (s *Spool) ringsUsed() uint32 {
	return min(s.data.load32(offRingsUsed), s.ringsMax)
}

// Lost returns what the recorder had to drop so far: records, threads for which it found no ring (their records are
// among the first), dictionary entries.
func (s *Spool) Lost() (records, rings, dict uint64) {
	for i := range s.ringsUsed() {
		others, enders := s.lostOf(i)
		records += others + enders
	}
	records += s.data.load64(offLostNested) + s.data.load64(offLostNoRing)
	return records, s.data.load64(offLostThreads), s.data.load64(offLostDict)
}

// lostOf returns how many records ring i had to drop: those that did not end memory, and those that did.
func (s *Spool) lostOf(i uint32) (others, enders uint64) {
	off := s.ringOffset(i)
	return s.data.load64(off + ringLostOthers), s.data.load64(off + ringLostFrees)
}

// lostFrom returns the lowest number that the first record that ring i dropped can have had, once it dropped any.
// Everything before it is there, as far as this ring goes.
func (s *Spool) lostFrom(i uint32) uint64 { return s.data.load64(s.ringOffset(i) + ringLostFrom) }

// PID returns the recording process's id in its own pid namespace.
func (s *Spool) PID() int { return int(int32(s.data.u32(offPID))) }
