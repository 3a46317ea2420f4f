package trace

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"memtrace/internal/section"
)

// Info is what is known about the run as a whole, under dotted keys. Every key is optional; later sections override
// earlier ones.
//
//	format.writer                            version of memtrace that wrote the file
//	process.pid .exe .command .cwd .host     who ran; process.argv holds the arguments separated by NUL
//	process.start_unix_ns                    when
//	process.recording                        identifies the recording; also in its spool's header
//	process.exit_status                      what the program passed to exit or _exit, 0 to 255; absent if something else ended it
//	process.signal                           the signal that ended it, by name, where memtrace run saw it
//	process.ended                            without an end section: "exit" or "killed", by what its spool held; "running" in a copy made meanwhile
//	process.numbers, process.in_flight       order numbers drawn, and for each call that had not returned the lowest that may be its own
//	process.lost_threads, .lost_dictionary   threads and dictionary entries that the recorder of a killed process had dropped
//	clock.base_unix_ns, clock.source         time 0 of the events; tsc or monotonic
//	env.NAME                                 variables that shape memory use or name the rank
//	cuda.driver_version, cuda.runtime_version, framework.torch, framework.mxnet, python.version, library.version
//	python.libraries                         packages of pip --target, in folders not named for them, separated by NUL
//	start                                    "early", or "late": after CUDA was used; when a recording began that did not begin with the program
//	start.after_ns                           how long the process had run by then
//	stop                                     who stopped the recording, where the program went on without it
//	snapshot                                 "1" where the trace holds only what was live at its end
//	nullgpu                                  "1" where no real GPU was used
//	thinned, thinned.*                       what was left out of the older part of a trace, see Thinned
//	trace.limit                              why MEMTRACE_TRACE_MAX was not kept
//	trace.altered                            what was wrong with the original, or with the spool, that this was made from
//	import.kind, import.brief, import.lacks  what an imported trace was made from, and what that does not hold, in a phrase and in sentences
//	referrers                                who refers to PyTorch's tensors, where the library looked for that by itself: when, for how many nanoseconds, how many bytes PyTorch had given out; then lines of tensors that are reached in the same way (trace)
//	referrers.growing                        the same from while the program ran and its memory grew; the latest counts
//	referrers.begun, referrers.skipped       "1" once it began to look when memory ran out; why it did not, or found nothing
//	drain                                    "off: <reason>" where the recorder stopped draining
type Info map[string]string

// SignalKey is the key of the signal that ended a program, such as SIGFPE, where it was observed: by `memtrace run`.
const SignalKey = "process.signal"

// Keys of the search for referrers of tensors: its result, its beginning, and why there is no result.
const (
	ReferrersKey        = "referrers"
	ReferrersBegunKey   = "referrers.begun"
	ReferrersSkippedKey = "referrers.skipped"
	// the same while the program ran and grew; the latest counts
	ReferrersGrowingKey = "referrers.growing"
)

// LimitKey is the key of why MEMTRACE_TRACE_MAX was not kept.
const LimitKey = "trace.limit"

// StartKey is the key of when a recording began that did not begin with its program; StartedLate is its value where
// CUDA was used before.
const (
	StartKey    = "start"
	StartedLate = "late"
)

// StartAfterKey is the key of how long the process had run when such a recording began, in nanoseconds.
const StartAfterKey = "start.after_ns"

// StopKey is the key of who stopped a recording before its program ended.
const StopKey = "stop"

// SnapshotKey is the key that marks a trace of what was live at one moment.
const SnapshotKey = "snapshot"

// ExitStatusKey is the key of a program's exit status.
const ExitStatusKey = "process.exit_status"

// AlteredKey is the fact, in a copy of a trace whose sections were not as they were written, or in a trace with which a
// damaged spool was merged, of what was wrong there.
const AlteredKey = "trace.altered"

// End closes a trace whose program ended in an orderly way; it is absent in a killed run.
type End struct {
	Reason      string // "exit", or why recording stopped
	LostRecords uint64 // records dropped because the rings were full
	LostRings   uint64 // threads that at some time got no ring; their records are among LostRecords
	LostDict    uint64 // dictionary entries dropped because the cap was reached
	EventCount  uint64 // events written; the writer fills it in where it is 0
	Time        int64  // nanoseconds since the trace's time base
}

// appendInfo encodes an info payload: uvarint pair count, then length-prefixed key and value, keys sorted.
func appendInfo(dst []byte, info Info) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(info)))
	for _, key := range slices.Sorted(maps.Keys(info)) {
		dst = appendText(dst, key)
		dst = appendText(dst, info[key])
	}
	return dst
}

// decodeInfo adds the pairs of an info payload to info.
func decodeInfo(payload []byte, info Info) error {
	d := decoder{data: payload}
	n := d.uvarint()
	for range n {
		key, value := d.text(section.MaxBytes), d.text(section.MaxBytes)
		if d.failed {
			break
		}
		info[key] = value
	}
	if d.failed {
		return fmt.Errorf("info section: %w", errShort)
	}
	return nil
}

// appendEnd encodes an end payload. The last 8 bytes are the file offset of the index section (0 without one), at a
// fixed place from the end of the file.
func appendEnd(dst []byte, e End, before section.Chain, indexOffset uint64) []byte {
	dst = appendText(dst, e.Reason)
	for _, v := range []uint64{e.LostRecords, e.LostRings, e.LostDict, e.EventCount, zigzag(e.Time)} {
		dst = binary.AppendUvarint(dst, v)
	}
	if before.Sections > 0 {
		dst = binary.AppendUvarint(dst, before.Sections)
		dst = binary.AppendUvarint(dst, uint64(before.Sum))
	}
	return binary.LittleEndian.AppendUint64(dst, indexOffset)
}

func decodeEnd(payload []byte) (e End, before section.Chain, err error) {
	if len(payload) < 8 {
		return End{}, section.Chain{}, fmt.Errorf("end section: %w", errShort)
	}
	d := decoder{data: payload[:len(payload)-8]}
	e = End{Reason: d.text(MaxString)}
	e.LostRecords, e.LostRings, e.LostDict, e.EventCount = d.uvarint(), d.uvarint(), d.uvarint(), d.uvarint()
	e.Time = unzigzag(d.uvarint())
	if d.more() {
		before = section.Chain{Sections: d.uvarint(), Sum: uint32(d.uvarint())}
	}
	if d.failed {
		return End{}, section.Chain{}, fmt.Errorf("end section: %w", errShort)
	}
	return e, before, nil
}

const (
	// MaxOOMBytes bounds one report of running out of memory.
	MaxOOMBytes = 1 << 20
	// MaxOOMReports bounds how many of them a reader keeps.
	MaxOOMReports = 256
)

// OOMReplayKey is the fact why a recorder wrote no text about running out of memory: "off (...)", or "given up (...)"
// from some moment on.
const OOMReplayKey = "oom.replay"

// OOMReporter is a Source that keeps the recorder's reports of running out of memory.
type OOMReporter interface {
	// OOMReports returns the reports read so far, in the order of the file: JSON objects, see docs/format.md. They
	// belong to the source.
	OOMReports() []string
}

// WriteOOM writes the recorder's report of running out of memory, a JSON object of at most MaxOOMBytes, at once. Events
// that it refers to may follow it.
func (w *Writer) WriteOOM(report string) error {
	if err := w.usable(); err != nil {
		return err
	}
	if err := checkOOM(report); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return w.sections.Write(section.OOM, []byte(report), len(report) > compressAbove)
}

func checkOOM(report string) error {
	switch {
	case len(report) > MaxOOMBytes:
		return fmt.Errorf("oom section of %d bytes, at most %d are allowed", len(report), MaxOOMBytes)
	case report == "" || !utf8.ValidString(report):
		return fmt.Errorf("oom section: no text")
	}
	return nil
}

// OOMReports implements OOMReporter.
func (r *Reader) OOMReports() []string { return r.oom }

func (r *Reader) takeOOM(payload []byte) error {
	report := string(payload)
	if err := checkOOM(report); err != nil {
		return err
	}
	if len(r.oom) < MaxOOMReports {
		r.oom = append(r.oom, report)
	}
	return nil
}

// Glance is what a file holds about its run outside its events.
type Glance struct {
	Info  Info
	Ended bool // it has an end section
}

// GlanceAt reads the facts and the end of a file of the given size, going from header to header. It stops at the first
// header that is damaged.
func GlanceAt(file io.ReaderAt, size int64) Glance {
	g := Glance{Info: make(Info)}
	var head [section.HeaderSize]byte
	for at := int64(section.HeadSize); !g.Ended; {
		if n, _ := file.ReadAt(head[:], at); n < len(head) {
			return g
		}
		header := section.ParseHeader(head[:])
		behind := at + section.HeaderSize + int64(header.Length)
		if behind > size {
			return g
		}
		if header.Kind == section.Info || header.Kind == section.End {
			g.take(section.NewReader(io.NewSectionReader(file, at, behind-at), behind, at))
		}
		at = behind
	}
	return g
}

// take reads one section; a damaged one is ignored.
func (g *Glance) take(sections section.Reader) {
	kind, payload, err := sections.NextWhole()
	if err != nil {
		return
	}
	if kind == section.Info {
		_ = decodeInfo(payload, g.Info)
		return
	}
	_, _, err = decodeEnd(payload)
	g.Ended = err == nil
}
