package trace

import (
	"encoding/binary"
	"errors"
	"fmt"

	"memtrace/internal/section"
)

// KeyframeVersion is that of the state in keyframes. It rises with every figure that needs more of it: a reader uses
// keyframes of its own version only, and begins at the beginning where there are others.
const KeyframeVersion = 2

// Keyframe is the state of a replay before a block of events: the blocks that are live, as the events that made them,
// and tables of all else that the events behind it are told from.
type Keyframe struct {
	KeyframePlace
	Live  []Event
	State State
}

// KeyframePlace says where a keyframe stands.
type KeyframePlace struct {
	Offset int64  // of the section of events that follows it
	Events uint64 // before it
	Seq    uint64 // highest order number among them
	Time   int64  // latest time among them, without late ones; ns

	at, before int64 // offsets of its own section and of that of the keyframe before it, 0 for none
	parts      uint64
	live       uint64
}

// What a section of a keyframe holds; its first byte. A keyframe is a place, then its parts: blocks of events, then
// tables. The last section of all is the closing, which holds for the whole trace.
const (
	keyframeOpens  = 1
	keyframeLive   = 2 // an event block: live blocks in the order in which they came
	keyframeTables = 3
	keyframeCloses = 4
)

const (
	// keyframePart is at how many bytes a section with tables is closed.
	keyframePart = 1 << 20
	// maxKeyframeParts bounds the sections of one keyframe.
	maxKeyframeParts = 1 << 16
)

// WriteKeyframe writes a keyframe behind the end of a trace.
func (w *Writer) WriteKeyframe(k *Keyframe) error {
	if err := w.usable(); err != nil {
		return err
	}
	parts := w.keyframeParts(k)
	if len(parts) > maxKeyframeParts {
		return fmt.Errorf("write trace: keyframe of %d parts, at most %d are allowed", len(parts), maxKeyframeParts)
	}
	at := w.sections.Offset()
	head := binary.AppendUvarint([]byte{keyframeOpens}, KeyframeVersion)
	for _, v := range []uint64{uint64(k.Offset), k.Events, k.Seq, zigzag(k.Time), uint64(w.keyframe),
		uint64(len(parts)), uint64(len(k.Live))} {
		head = binary.AppendUvarint(head, v)
	}
	if err := w.sections.Write(section.Keyframe, head, false); err != nil {
		return err
	}
	for _, part := range parts {
		if err := w.sections.Write(section.Keyframe, part, true); err != nil {
			return err
		}
	}
	w.keyframe = at
	return nil
}

func (w *Writer) keyframeParts(k *Keyframe) (parts [][]byte) {
	for live := k.Live; len(live) > 0; {
		n := min(len(live), MaxBlockEvents)
		for part := live[:n]; len(part) > 0; {
			m := min(len(part), batchEvents)
			w.block.append(part[:m])
			part = part[m:]
		}
		parts = append(parts, w.block.finish([]byte{keyframeLive}, 0))
		live = live[n:]
	}
	return append(parts, stateParts(&k.State)...)
}

func stateParts(s *State) (parts [][]byte) {
	for from := 0; from < len(s.names); {
		var part []byte
		part, from = s.append([]byte{keyframeTables}, from)
		parts = append(parts, part)
	}
	return parts
}

// KeyframesClosing holds for a whole trace that has keyframes.
type KeyframesClosing struct {
	Health Health // of a whole reading, as far as what was passed over counts there
	State  State
}

// writeClosing writes what makes the keyframes before it those of a trace, whose end section is given.
func (w *Writer) writeClosing(c *KeyframesClosing, end []byte) error {
	head := binary.AppendUvarint([]byte{keyframeCloses}, KeyframeVersion)
	head = binary.AppendUvarint(head, uint64(w.keyframe))
	for _, v := range closingBooks(&c.Health) {
		head = binary.AppendUvarint(head, *v)
	}
	head = binary.AppendUvarint(head, uint64(len(end)))
	head = append(head, end...)
	parts := stateParts(&c.State)
	head = binary.AppendUvarint(head, uint64(len(parts)))
	for _, part := range append([][]byte{head}, parts...) {
		if err := w.sections.Write(section.Keyframe, part, len(part) > compressAbove); err != nil {
			return err
		}
	}
	return nil
}

// closingBooks are the figures of Health that a reader counts from events.
func closingBooks(h *Health) []*uint64 {
	return []*uint64{&h.Events, &h.LateEvents, &h.UnknownEvents, &h.Gaps, &h.InFlight, &h.MaxSeq}
}

var errKeyframe = errors.New("keyframe is inconsistent")

// decodePlace reads what WriteKeyframe wrote first. Places lie in the file, one behind the other.
func decodePlace(payload []byte, at int64) (p KeyframePlace, err error) {
	d := decoder{data: payload}
	kind, version := d.bytes(1), d.uvarint()
	if d.failed || kind[0] != keyframeOpens || version != KeyframeVersion {
		return p, fmt.Errorf("%w: place at offset %d", errKeyframe, at)
	}
	p = KeyframePlace{Offset: int64(d.uvarint()), Events: d.uvarint(), Seq: d.uvarint(), Time: unzigzag(d.uvarint()),
		at: at, before: int64(d.uvarint()), parts: d.uvarint(), live: d.uvarint()}
	if d.failed || p.Offset < section.HeadSize || p.Offset >= at || p.before < 0 || p.before >= at ||
		p.parts > maxKeyframeParts || p.live > p.parts*MaxBlockEvents {
		return p, fmt.Errorf("%w: place at offset %d", errKeyframe, at)
	}
	return p, nil
}
