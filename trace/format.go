// Package trace reads and writes trace files: events of GPU memory, the dictionary of stacks, strings and modules that
// they refer to, and what is known about the run.
//
// A [Reader] reads a file from front to back in batches of events; spool.OpenRun opens a path, whether the file is
// whole or its process was killed or still runs. [Tables] holds the dictionary, [Info] the facts about the run,
// [Health] what is damaged or missing. A [Writer] writes a file, or continues one.
//
// Packages below: section frames the file, with checksums and parity; spool reads what the recorder of a killed process
// left; importer makes traces of other tools' files; textform writes and reads a trace as text. docs/format.md
// describes the bytes.
package trace

import (
	"encoding/binary"
	"errors"
	"fmt"

	"memtrace/internal/section"
)

const (
	// FormatVersion is the version this package writes. It changes when a file would mislead a reader of the version
	// before; new event kinds, fields, dictionary entries and section kinds do not change it, since a reader skips
	// those it does not know.
	FormatVersion = 1
	// OldestVersion is the oldest version this package reads.
	OldestVersion = 1

	magic = "MEMTRACE"
)

// Errors of NewReader: the file is not a trace that this program can read. A trace that is cut or damaged further on is
// not an error, see Health.
var (
	ErrNotTrace = errors.New("not a memtrace trace")
	ErrVersion  = errors.New("trace format version not supported")
	ErrEmpty    = errors.New("trace is empty: the program ended before its first record was written")
)

// fileHead returns the 16 bytes that open a trace: magic, version, flags (0).
func fileHead() []byte {
	head := make([]byte, 0, section.HeadSize)
	head = append(head, magic...)
	head = binary.LittleEndian.AppendUint32(head, FormatVersion)
	return binary.LittleEndian.AppendUint32(head, 0)
}

// parseHead checks the opening bytes of a file. Fewer bytes than a head has are a trace cut in its head (ErrEmpty) if
// they begin like one.
func parseHead(head []byte) (version uint32, err error) {
	if len(head) < section.HeadSize {
		if n := min(len(head), len(magic)); string(head[:n]) != magic[:n] {
			return 0, ErrNotTrace
		}
		return 0, ErrEmpty
	}
	if string(head[:len(magic)]) != magic {
		return 0, ErrNotTrace
	}
	version = binary.LittleEndian.Uint32(head[8:])
	if version < OldestVersion || version > FormatVersion {
		return version, fmt.Errorf(
			"%w: the file has version %d, this memtrace reads %d to %d; use the memtrace that recorded it or a newer one",
			ErrVersion, version, OldestVersion, FormatVersion)
	}
	if flags := binary.LittleEndian.Uint32(head[12:]); flags != 0 {
		return version, fmt.Errorf(
			"%w: the file's head has flags %#x, which this memtrace (version %d) does not know; use a newer one",
			ErrVersion, flags, FormatVersion)
	}
	return version, nil
}

// The limits keep a damaged or hostile file from costing more memory than its size justifies. Raising one keeps old
// files readable; lowering one refuses files that an earlier version wrote, so it needs a new format version.
const (
	// MaxBlockEvents is the number of events at which the writer closes a block, and the most a reader accepts in one.
	MaxBlockEvents = 64 << 10
	// MaxString bounds a dictionary string, a path and a name, in bytes.
	MaxString = 1 << 20
	// MaxFrames bounds the frames of one call stack, native or Python.
	MaxFrames = 4096
	// MaxLineTable bounds the line table of one Python code object, in bytes.
	MaxLineTable = 1 << 20

	// compressAbove is the size at which a dictionary is worth a zstd frame.
	compressAbove = 256
	// dictionaryTarget is the size at which the writer closes a dictionary section by itself, which bounds its buffer.
	dictionaryTarget = 1 << 20
	// batchEvents is the number of events that travel through the column codecs at a time: their rows (112 bytes each)
	// stay in a second-level cache.
	batchEvents = 1024
)
