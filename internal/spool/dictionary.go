package spool

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"memtrace/trace"
)

// Dictionary takes the entries that events refer to. *trace.Writer is one; Tables of a reader are filled by another.
type Dictionary interface {
	WriteInfo(trace.Info) error
	WriteString(trace.StringID, string) error
	WriteStack(trace.Stack) error
	WriteModule(trace.Module) error
	WriteThread(trace.Thread) error
	WriteDevice(trace.Device) error
	WritePyStack(trace.PyStack) error
	WriteCode(trace.Code) error
}

// tableFiller puts dictionary entries into tables that a reader may have begun to fill.
type tableFiller struct {
	tables *trace.Tables
	info   trace.Info
}

func (t tableFiller) WriteInfo(info trace.Info) error {
	maps.Copy(t.info, info)
	return nil
}

func (t tableFiller) WriteString(id trace.StringID, s string) error {
	t.tables.AddString(id, s)
	return nil
}

func (t tableFiller) WriteStack(s trace.Stack) error   { t.tables.AddStack(s); return nil }
func (t tableFiller) WriteModule(m trace.Module) error { t.tables.AddModule(m); return nil }
func (t tableFiller) WriteThread(x trace.Thread) error { t.tables.AddThread(x); return nil }
func (t tableFiller) WriteDevice(d trace.Device) error { t.tables.AddDevice(d); return nil }
func (t tableFiller) WriteCode(c trace.Code) error     { t.tables.AddCode(c); return nil }
func (t tableFiller) WritePyStack(s trace.PyStack) error {
	t.tables.AddPyStack(s)
	return nil
}

// dictCursor remembers which dictionary entries were passed on.
type dictCursor struct {
	next    uint32   // first index slot not read
	waiting []uint32 // slots that were reserved but not yet committed
	// bytes of entries passed on: entries never overlap, so a damaged file cannot have more than it is long
	passed uint64
}

// read passes new entries on. An entry that an already committed record refers to is always committed before it.
func (d *dictCursor) read(s *Spool, out Dictionary) error {
	used := min(s.data.load32(offIndexUsed), s.indexMax)
	waiting := d.waiting[:0]
	pass := func(slot uint32) error {
		off := s.indexOffset + uint64(slot)*indexEntrySize
		if !s.data.in(off, indexEntrySize) {
			return nil
		}
		kind := s.data.load32(off)
		if kind == 0 {
			waiting = append(waiting, slot)
			return nil
		}
		length, at := uint64(s.data.u32(off+4)), s.data.u64(off+8)
		if at > s.dataMax || length > s.dataMax-at || !s.data.in(s.dataOffset+at, length) {
			return nil // only a damaged file has such an entry
		}
		if d.passed += length; d.passed > uint64(len(s.data)) {
			return nil
		}
		return passEntry(out, kind, slot+1, s.data[s.dataOffset+at:s.dataOffset+at+length])
	}
	for _, slot := range append([]uint32(nil), d.waiting...) {
		if err := pass(slot); err != nil {
			return err
		}
	}
	for ; d.next < used; d.next++ {
		if err := pass(d.next); err != nil {
			return err
		}
	}
	d.waiting = waiting
	return nil
}

func passEntry(out Dictionary, kind, id uint32, b []byte) error {
	switch kind {
	case dictString:
		return out.WriteString(trace.StringID(id), string(b))
	case dictStack:
		if len(b) < 8 {
			return nil
		}
		end := trace.StackEnd(b[0])
		b = b[8:]
		n := len(b) / 8
		if n > trace.MaxFrames {
			n, end = trace.MaxFrames, trace.StackDepth
		}
		frames := make([]uint64, n)
		for i := range frames {
			frames[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
		return out.WriteStack(trace.Stack{ID: trace.StackID(id), Frames: frames, End: end})
	case dictModule:
		return passModule(out, id, b)
	case dictThread:
		if len(b) < 4 {
			return nil
		}
		return out.WriteThread(trace.Thread{ID: trace.ThreadID(id), TID: int32(binary.LittleEndian.Uint32(b)),
			Name: string(b[4:])})
	case dictDevice:
		return passDevice(out, b)
	case dictPyStack:
		return passPyStack(out, id, b)
	case dictCode:
		return passCode(out, id, b)
	case dictInfo:
		key, value, found := bytes.Cut(b, []byte{0})
		if !found {
			return nil
		}
		return out.WriteInfo(infoOf(string(key), string(value)))
	}
	return nil // a later kind
}

// infoOf turns one raw fact into the keys of trace.Info.
func infoOf(key, value string) trace.Info {
	info := trace.Info{key: value}
	switch key {
	case "process.argv":
		info[key] = strings.TrimRight(value, "\x00")
		info["process.command"] = strings.ReplaceAll(info[key], "\x00", " ")
	case "drain":
		info[key] = "off: " + value
	}
	return info
}

func passModule(out Dictionary, id uint32, b []byte) error {
	const head = 48
	if len(b) < head {
		return nil
	}
	idLength, pathLength := uint64(binary.LittleEndian.Uint32(b[40:])), uint64(binary.LittleEndian.Uint32(b[44:]))
	if idLength+pathLength > uint64(len(b)-head) {
		return nil
	}
	return out.WriteModule(trace.Module{
		ID:      trace.ModuleID(id),
		Start:   binary.LittleEndian.Uint64(b),
		End:     binary.LittleEndian.Uint64(b[8:]),
		Base:    binary.LittleEndian.Uint64(b[16:]),
		Size:    binary.LittleEndian.Uint64(b[24:]),
		ModTime: int64(binary.LittleEndian.Uint64(b[32:])),
		BuildID: hex.EncodeToString(b[head : head+idLength]),
		Path:    string(b[head+idLength : head+idLength+pathLength]),
	})
}

func passDevice(out Dictionary, b []byte) error {
	if len(b) < 32 {
		return nil
	}
	index, nameLength := int32(binary.LittleEndian.Uint32(b)), binary.LittleEndian.Uint32(b[4:])
	if uint64(nameLength) > uint64(len(b)-32) {
		return nil
	}
	u := b[16:32]
	name := string(b[32 : 32+nameLength])
	if strings.Contains(name, "Null GPU") {
		if err := out.WriteInfo(trace.Info{"nullgpu": "1"}); err != nil {
			return err
		}
	}
	return out.WriteDevice(trace.Device{
		Index: int16(index), Name: name, TotalBytes: binary.LittleEndian.Uint64(b[8:]),
		UUID: fmt.Sprintf("GPU-%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16]),
	})
}

// Info returns what the header knows of the run.
func (s *Spool) Info() trace.Info {
	c := s.readClock()
	source := "monotonic"
	if s.data.u32(offClockIsTSC) != 0 {
		source = "tsc"
	}
	info := trace.Info{
		"process.pid":           strconv.Itoa(s.PID()),
		recordingKey:            s.recording(),
		"process.start_unix_ns": strconv.FormatInt(c.first.realtime, 10),
		"clock.base_unix_ns":    strconv.FormatInt(c.first.realtime, 10),
		"clock.source":          source,
	}
	s.roomInfo(info)
	if status := s.data.load32(offExitStatus); status&^0xff == exited {
		info[trace.ExitStatusKey] = strconv.Itoa(int(status & 0xff))
	}
	return info
}
