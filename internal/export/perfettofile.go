package export

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"

	"memtrace/internal/sanitize"

	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of fields of Perfetto's messages (perfetto_trace.proto).
const (
	pfTracePacket = 1

	pfPacketTimestamp     = 8
	pfPacketSequence      = 10
	pfPacketTrackEvent    = 11
	pfPacketSequenceFlags = 13
	pfPacketDescriptor    = 60

	pfTrackUUID     = 1
	pfTrackName     = 2
	pfTrackProcess  = 3
	pfTrackParent   = 5
	pfTrackCounter  = 8
	pfTrackOrdering = 11
	pfTrackRank     = 12

	pfProcessPID  = 1
	pfProcessArgs = 2
	pfProcessName = 6

	pfCounterUnit = 3

	pfEventAnnotation = 4
	pfEventType       = 9
	pfEventTrack      = 11
	pfEventName       = 23
	pfEventValue      = 30

	pfAnnotationUint   = 3
	pfAnnotationString = 6
	pfAnnotationName   = 10
)

// Values of them.
const (
	pfSliceBegin, pfSliceEnd, pfInstant, pfCounter = 1, 2, 3, 4

	pfUnitBytes      = 3
	pfExplicitRanks  = 3
	pfStateCleared   = 1
	pfSequence       = 1                  // of all packets
	pfFirstTrack     = 0x6d656d7472616365 // "memtrace": traces that are joined must not share tracks
	pfNameCharacters = 240
	pfMostBytes      = math.MaxInt64
)

// perfettoTrack is a track of the file; 0 is none.
type perfettoTrack uint64

// perfettoNote is the text that the viewer shows of a slice or an instant.
type perfettoNote struct {
	name  string
	bytes uint64
	text  string // instead of bytes, if not ""
}

// perfettoFile writes packets, each as it arrives. The buffer keeps the first error.
type perfettoFile struct {
	out    *bufio.Writer
	tracks uint64
	begun  bool

	packet, message, part []byte // reused
}

func newPerfettoFile(w io.Writer) *perfettoFile {
	return &perfettoFile{out: bufio.NewWriterSize(w, 1<<16)}
}

// write writes a packet that contains one message of a kind.
func (f *perfettoFile) write(kind protowire.Number, time int64, message []byte) {
	p := f.packet[:0]
	if time >= 0 {
		p = appendVarint(p, pfPacketTimestamp, uint64(time))
	}
	p = appendVarint(p, pfPacketSequence, pfSequence)
	if !f.begun {
		p = appendVarint(p, pfPacketSequenceFlags, pfStateCleared)
		f.begun = true
	}
	p = appendBytes(p, kind, message)
	f.packet = p
	head := protowire.AppendTag(f.out.AvailableBuffer(), pfTracePacket, protowire.BytesType)
	f.out.Write(protowire.AppendVarint(head, uint64(len(p))))
	f.out.Write(p)
}

func appendVarint(b []byte, field protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), value)
}

func appendBytes(b []byte, field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), value)
}

func appendText(b []byte, field protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}

// readable sanitizes a name from a trace for display.
func readable(name string) string {
	if most := 8 * pfNameCharacters; len(name) > most { // the middle is clipped anyway
		name = name[:most/2] + name[len(name)-most/2:]
	}
	return clipMiddle(sanitize.Text(strings.ToValidUTF8(name, "\ufffd")), pfNameCharacters)
}

// process adds the parent track of all others.
func (f *perfettoFile) process(pid int64, command string) perfettoTrack {
	id := f.next()
	m := appendVarint(f.message[:0], pfTrackUUID, uint64(id))
	m = appendText(m, pfTrackName, readable(command))
	if pid > 0 && pid <= math.MaxInt32 {
		p := appendVarint(f.part[:0], pfProcessPID, uint64(pid))
		p = appendText(p, pfProcessArgs, readable(command))
		f.part = appendText(p, pfProcessName, readable(command))
		m = appendBytes(m, pfTrackProcess, f.part)
	}
	f.message = appendVarint(m, pfTrackOrdering, pfExplicitRanks)
	f.write(pfPacketDescriptor, -1, f.message)
	return id
}

func (f *perfettoFile) next() perfettoTrack {
	f.tracks++
	return perfettoTrack(pfFirstTrack + f.tracks)
}

// track adds a track for slices and instants, or one that contains others; rank is its position in its parent.
func (f *perfettoFile) track(parent perfettoTrack, name string, rank int) perfettoTrack {
	return f.describe(parent, name, rank, false)
}

// counter adds a track of bytes.
func (f *perfettoFile) counter(parent perfettoTrack, name string, rank int) perfettoTrack {
	return f.describe(parent, name, rank, true)
}

func (f *perfettoFile) describe(parent perfettoTrack, name string, rank int, counter bool) perfettoTrack {
	id := f.next()
	m := appendVarint(f.message[:0], pfTrackUUID, uint64(id))
	m = appendText(m, pfTrackName, readable(name))
	m = appendVarint(m, pfTrackParent, uint64(parent))
	if counter {
		f.part = appendVarint(f.part[:0], pfCounterUnit, pfUnitBytes)
		m = appendBytes(m, pfTrackCounter, f.part)
	}
	m = appendVarint(m, pfTrackOrdering, pfExplicitRanks)
	f.message = appendVarint(m, pfTrackRank, uint64(rank))
	f.write(pfPacketDescriptor, -1, f.message)
	return id
}

// set writes a counter's value from a moment on.
func (f *perfettoFile) set(track perfettoTrack, time int64, bytes uint64) {
	m := appendVarint(f.message[:0], pfEventType, pfCounter)
	m = appendVarint(m, pfEventTrack, uint64(track))
	f.message = appendVarint(m, pfEventValue, min(bytes, pfMostBytes))
	f.write(pfPacketTrackEvent, max(time, 0), f.message)
}

func (f *perfettoFile) begin(track perfettoTrack, time int64, name string, notes ...perfettoNote) {
	f.named(pfSliceBegin, track, time, name, notes)
}

func (f *perfettoFile) instant(track perfettoTrack, time int64, name string, notes ...perfettoNote) {
	f.named(pfInstant, track, time, name, notes)
}

func (f *perfettoFile) named(kind uint64, track perfettoTrack, time int64, name string, notes []perfettoNote) {
	m := appendVarint(f.message[:0], pfEventType, kind)
	m = appendVarint(m, pfEventTrack, uint64(track))
	m = appendText(m, pfEventName, readable(name))
	for _, note := range notes {
		p := appendText(f.part[:0], pfAnnotationName, note.name)
		if note.text != "" {
			p = appendText(p, pfAnnotationString, readable(note.text))
		} else {
			p = appendVarint(p, pfAnnotationUint, note.bytes)
		}
		f.part = p
		m = appendBytes(m, pfEventAnnotation, p)
	}
	f.message = m
	f.write(pfPacketTrackEvent, max(time, 0), m)
}

// end ends the slice of a track that began last.
func (f *perfettoFile) end(track perfettoTrack, time int64) {
	m := appendVarint(f.message[:0], pfEventType, pfSliceEnd)
	f.message = appendVarint(m, pfEventTrack, uint64(track))
	f.write(pfPacketTrackEvent, max(time, 0), f.message)
}

// slice writes a whole slice.
func (f *perfettoFile) slice(track perfettoTrack, from, to int64, name string, notes ...perfettoNote) {
	f.begin(track, from, name, notes...)
	f.end(track, max(from, to))
}

func (f *perfettoFile) flush() error {
	if err := f.out.Flush(); err != nil {
		return fmt.Errorf("write the trace for Perfetto: %w", err)
	}
	return nil
}
