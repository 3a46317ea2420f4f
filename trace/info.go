package trace

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// Info is what is known about the run as a whole, under dotted keys. Every key is optional; later sections override
// earlier ones.
//
//	format.writer                            version of memtrace that wrote the file
//	process.pid .exe .command .cwd .host     who ran; process.argv holds the arguments separated by NUL
//	process.start_unix_ns                    when
//	process.exit_status                      what the program passed to exit or _exit, 0 to 255; absent if something else ended it
//	process.signal                           the signal that ended it, by name, where memtrace run saw it
//	process.numbers, process.in_flight       order numbers drawn, and for each call that had not returned the lowest that may be its own
//	process.lost_threads, .lost_dictionary   threads and dictionary entries that the recorder of a killed process had dropped
//	clock.base_unix_ns, clock.source         time 0 of the events; tsc or monotonic
//	env.NAME                                 variables that shape memory use or name the rank
//	cuda.driver_version, cuda.runtime_version, framework.torch, framework.mxnet, python.version, library.version
//	python.libraries                         packages in folders whose names do not say so, separated by NUL: pip --target put them there
//	start                                    "early", or "late": after CUDA was used; when the program called memtrace_start, absent under LD_PRELOAD
//	nullgpu                                  "1" where no real GPU was used
//	thinned, thinned.*                       what was left out of the older part of a trace, see Thinned
//	trace.limit                              why MEMTRACE_TRACE_MAX was not kept
//	trace.altered                            what was wrong with the original, or with the spool, that this was made from
//	import.kind, import.brief, import.lacks  what an imported trace was made from, and what that does not hold, in a phrase and in sentences
//	drain                                    "off: <reason>" where the recorder stopped draining
type Info map[string]string

// SignalKey is the key of the signal that ended a program, such as SIGFPE, where somebody saw it: `memtrace run`.
const SignalKey = "process.signal"

// LimitKey is the key of why MEMTRACE_TRACE_MAX was not kept.
const LimitKey = "trace.limit"

// StartKey is the key of when a program called memtrace.start(), and StartedLate what it says where CUDA was used
// before.
const (
	StartKey    = "start"
	StartedLate = "late"
)

// ExitStatusKey is the key of a program's exit status.
const ExitStatusKey = "process.exit_status"

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
		key, value := d.text(MaxSectionBytes), d.text(MaxSectionBytes)
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
func appendEnd(dst []byte, e End, before chain, indexOffset uint64) []byte {
	dst = appendText(dst, e.Reason)
	for _, v := range []uint64{e.LostRecords, e.LostRings, e.LostDict, e.EventCount, zigzag(e.Time)} {
		dst = binary.AppendUvarint(dst, v)
	}
	if before.sections > 0 {
		dst = binary.AppendUvarint(dst, before.sections)
		dst = binary.AppendUvarint(dst, uint64(before.sum))
	}
	return binary.LittleEndian.AppendUint64(dst, indexOffset)
}

func decodeEnd(payload []byte) (e End, before chain, err error) {
	if len(payload) < 8 {
		return End{}, chain{}, fmt.Errorf("end section: %w", errShort)
	}
	d := decoder{data: payload[:len(payload)-8]}
	e = End{Reason: d.text(MaxString)}
	e.LostRecords, e.LostRings, e.LostDict, e.EventCount = d.uvarint(), d.uvarint(), d.uvarint(), d.uvarint()
	e.Time = unzigzag(d.uvarint())
	if d.more() {
		before = chain{sections: d.uvarint(), sum: uint32(d.uvarint())}
	}
	if d.failed {
		return End{}, chain{}, fmt.Errorf("end section: %w", errShort)
	}
	return e, before, nil
}
