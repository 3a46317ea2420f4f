package trace

import (
	"encoding/binary"
	"fmt"
)

// entryKind is what a dictionary entry defines. Numbers are append-only and are written to disk; readers skip kinds
// they do not know.
type entryKind uint8

const (
	entryString  entryKind = 1
	entryStack   entryKind = 2
	entryModule  entryKind = 3
	entryThread  entryKind = 4
	entryDevice  entryKind = 5
	entryPyStack entryKind = 6
	entryCode    entryKind = 7

	entrySymbol entryKind = 255 // in memory only: symbols have their own sections
)

// A dictionary section is a row of entries: one byte kind, uvarint length of the body, body. A later version may append
// values to a body; a reader leaves what it does not know unread.

// entryEncoder appends entries to a buffer, reusing its scratch space for the body, whose length precedes it.
type entryEncoder struct{ body []byte }

func (e *entryEncoder) finish(dst []byte, kind entryKind, body []byte) []byte {
	e.body = body
	dst = append(dst, byte(kind))
	dst = binary.AppendUvarint(dst, uint64(len(body)))
	return append(dst, body...)
}

func (e *entryEncoder) appendString(dst []byte, id StringID, s string) []byte {
	body := binary.AppendUvarint(e.body[:0], uint64(id))
	return e.finish(dst, entryString, appendText(body, s))
}

// appendStack writes the frames as differences to the frame before, so that the tails of stacks that share their outer
// frames are the same bytes.
func (e *entryEncoder) appendStack(dst []byte, s Stack) []byte {
	body := binary.AppendUvarint(e.body[:0], uint64(s.ID))
	body = binary.AppendUvarint(body, uint64(len(s.Frames)))
	var previous uint64
	for _, pc := range s.Frames {
		body = binary.AppendUvarint(body, zigzag(int64(pc-previous)))
		previous = pc
	}
	return e.finish(dst, entryStack, binary.AppendUvarint(body, uint64(s.End)))
}

func (e *entryEncoder) appendModule(dst []byte, m Module) []byte {
	body := binary.AppendUvarint(e.body[:0], uint64(m.ID))
	body = binary.AppendUvarint(body, m.Start)
	body = binary.AppendUvarint(body, m.End)
	body = binary.AppendUvarint(body, m.Base)
	body = appendText(appendText(body, m.Path), m.BuildID)
	body = binary.AppendUvarint(body, m.Size)
	return e.finish(dst, entryModule, binary.AppendUvarint(body, zigzag(m.ModTime)))
}

func (e *entryEncoder) appendThread(dst []byte, th Thread) []byte {
	body := binary.AppendUvarint(e.body[:0], uint64(th.ID))
	body = binary.AppendUvarint(body, zigzag(int64(th.TID)))
	return e.finish(dst, entryThread, appendText(body, th.Name))
}

func (e *entryEncoder) appendDevice(dst []byte, d Device) []byte {
	body := binary.AppendUvarint(e.body[:0], zigzag(int64(d.Index)))
	body = appendText(appendText(body, d.Name), d.UUID)
	return e.finish(dst, entryDevice, binary.AppendUvarint(body, d.TotalBytes))
}

// entryDecoder adds the entries of dictionary sections to a Tables.
type entryDecoder struct {
	tables   *Tables
	frames   []uint64
	pyframes []PyFrame
}

// decode reads a whole dictionary section. Entries before a faulty one are kept.
func (e *entryDecoder) decode(payload []byte) error {
	d := decoder{data: payload}
	for len(d.data) > 0 {
		kind := entryKind(d.data[0])
		d.data = d.data[1:]
		body := decoder{data: d.bytes(d.uvarint())}
		if d.failed {
			return fmt.Errorf("dictionary section: %w", errShort)
		}
		e.entry(kind, &body)
		if body.failed {
			return fmt.Errorf("dictionary section: entry of kind %d: %w", kind, errShort)
		}
	}
	return nil
}

// entry decodes one body and, if it is whole, keeps it.
func (e *entryDecoder) entry(kind entryKind, d *decoder) {
	switch kind {
	case entryString:
		id, s := StringID(d.id()), d.text(MaxString)
		if !d.failed {
			e.tables.AddString(id, s)
		}
	case entryStack:
		id, n := StackID(d.id()), d.uvarint()
		// A frame takes at least one byte, so what is left bounds the number before anything is allocated.
		if n > MaxFrames || n > uint64(len(d.data)) {
			d.fail()
			return
		}
		e.frames = e.frames[:0]
		var pc uint64
		for range n {
			pc += uint64(unzigzag(d.uvarint()))
			e.frames = append(e.frames, pc)
		}
		// Recorders that wrote no end recorded the caller alone.
		end := StackCaller
		if d.more() {
			end = d.stackEnd()
		}
		if !d.failed {
			e.tables.AddStack(Stack{ID: id, Frames: e.frames, End: end})
		}
	case entryModule:
		m := Module{ID: ModuleID(d.id()), Start: d.uvarint(), End: d.uvarint(), Base: d.uvarint()}
		m.Path, m.BuildID = d.text(MaxString), d.text(MaxString)
		if d.more() {
			m.Size, m.ModTime = d.uvarint(), unzigzag(d.uvarint())
		}
		if !d.failed {
			e.tables.AddModule(m)
		}
	case entryThread:
		th := Thread{ID: ThreadID(d.id())}
		tid := unzigzag(d.uvarint())
		th.TID, th.Name = int32(tid), d.text(MaxString)
		if int64(th.TID) != tid {
			d.fail()
		}
		if !d.failed {
			e.tables.AddThread(th)
		}
	case entryDevice:
		index := unzigzag(d.uvarint())
		dev := Device{Index: int16(index), Name: d.text(MaxString), UUID: d.text(MaxString), TotalBytes: d.uvarint()}
		if int64(dev.Index) != index {
			d.fail()
		}
		if !d.failed {
			e.tables.AddDevice(dev)
		}
	case entryPyStack:
		e.pyStack(d)
	case entryCode:
		e.code(d)
	}
}
