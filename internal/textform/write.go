// Package textform writes traces as text, and traces from text.
//
// The text form of a trace is one line for each fact: a word, then name=value pairs. Fields that are zero are left out.
//
//	trace version=1
//	info key="process.pid" value="4711"
//	string id=3 value="model.encoder"
//	stack id=5 frames=0x7f0000001234,0x401020
//	code id=6 name="step" qualname="Model.step" file="train.py" line=10 table=locations lines=80007a
//	pystack id=7 frames=6+34,6+12*@0x7f10 end=depth
//	module id=1 start=0x400000 end=0x500000 base=0x400000 path="/usr/bin/train" buildid="ab12"
//	symbol module=1 address=0x401020 function="main" file="train.c" line=12 start=0x401000
//	thread id=1 tid=4711 name="python3"
//	device index=0 name="GPU" uuid="GPU-1" total=85899345920
//	alloc seq=1 time=1200 thread=1 level=driver api=cuMemAlloc_v2 mem=device addr=0x7f5a40000000 size=20971520 stack=5 tag=3
//	flush watermark=2
//	oomreport json="{...}"
//	end reason="exit" events=1 time=5000
//
// An event's word is the name of its kind and its names are those of FieldSpecs. Calls, levels and memory kinds go by
// name, or by number where this version has no name for it. Texts are quoted as in Go. "flush" ends a block of events.
// Lines that begin with # are comments.
package textform

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"memtrace/cuda"
	"memtrace/trace"
)

// Write writes the rest of src in text form. Encoding that text gives a trace whose text is the same. A trace that is
// cut or damaged ends with a comment about that.
func Write(w io.Writer, src trace.Source) error {
	t := writer{out: bufio.NewWriter(w), src: src, info: make(trace.Info)}
	t.tracker, _ = src.(trace.BlockSource)
	t.line = append(t.line, "trace version="...)
	t.line = strconv.AppendUint(t.line, trace.FormatVersion, 10)
	t.flushLine()
	if err := t.events(); err != nil {
		return fmt.Errorf("write text form: %w", err)
	}
	if err := t.out.Flush(); err != nil {
		return fmt.Errorf("write text form: %w", err)
	}
	return nil
}

// writer appends to one line at a time.
type writer struct {
	out     *bufio.Writer
	src     trace.Source
	err     error // of the output
	line    []byte
	info    trace.Info     // as far as it was written
	entries int            // dictionary entries written
	oom     int            // reports of running out of memory written
	needed  *neededEntries // only these entries are written; nil: all

	tracker   trace.BlockSource
	block     uint64 // number of the block that the last events came from, 0 before the first
	watermark uint64 // of that block
	value     [1]uint64
}

func (t *writer) flushLine() {
	t.line = append(t.line, '\n')
	if _, err := t.out.Write(t.line); err != nil {
		t.err = err
	}
	t.line = t.line[:0]
}

func (t *writer) events() error {
	for {
		batch, err := t.src.ReadBatch()
		if err != nil && err != io.EOF {
			return err
		}
		t.endBlock(err == io.EOF)
		t.writeInfo()
		t.writeEntries()
		t.writeOOM()
		if err == io.EOF {
			break
		}
		for i := range batch {
			if t.needed != nil {
				t.needs(&batch[i])
			}
			t.event(batch[i : i+1])
		}
		if t.err != nil {
			return t.err
		}
	}
	if end, ok := t.src.End(); ok {
		t.end(end)
	}
	h := t.src.Health()
	if restored := h.Restored; restored.Stretches > 0 {
		t.line = fmt.Appendf(t.line, "# damaged at offset %d, and restored", restored.At)
		t.flushLine()
	}
	if torn := h.Torn; torn.Stretches > 0 {
		t.line = fmt.Appendf(t.line, "# damaged at offset %d: %q; %d bytes were passed over", torn.At, torn.Reason,
			torn.Bytes)
		t.flushLine()
	}
	if h.Truncated {
		t.line = fmt.Appendf(t.line, "# damaged at offset %d: %q", h.TruncatedAt, h.Reason)
		t.flushLine()
	}
	return nil
}

// endBlock writes a flush line if the events written last were the end of a block.
func (t *writer) endBlock(last bool) {
	if t.tracker == nil {
		return
	}
	number, watermark := t.tracker.CurrentBlock()
	if t.block != 0 && (last || number != t.block) {
		t.line = append(t.line, "flush"...)
		t.number("watermark", t.watermark)
		t.flushLine()
	}
	t.block, t.watermark = number, watermark
}

func (t *writer) writeInfo() {
	if t.needed != nil {
		return
	}
	info := t.src.Info()
	for _, key := range slices.Sorted(maps.Keys(info)) {
		if written, ok := t.info[key]; ok && written == info[key] {
			continue
		}
		t.info[key] = info[key]
		t.line = append(t.line, "info"...)
		t.quoted("key", key)
		t.quoted("value", info[key])
		t.flushLine()
	}
}

func (t *writer) writeEntries() {
	tables := t.src.Tables()
	if t.needed != nil {
		t.needed.look(tables)
		return
	}
	for ; t.entries < tables.Entries(); t.entries++ {
		t.entry(tables.Entry(t.entries))
		t.flushLine()
	}
}

func (t *writer) entry(entry any) {
	switch v := entry.(type) {
	case trace.String:
		t.line = append(t.line, "string"...)
		t.number("id", uint64(v.ID))
		t.quoted("value", v.Value)
	case trace.Stack:
		t.stack(v)
	case trace.PyStack:
		t.pyStack(v)
	case trace.Code:
		t.code(v)
	case trace.Module:
		t.line = append(t.line, "module"...)
		t.number("id", uint64(v.ID))
		t.hex("start", v.Start)
		t.hex("end", v.End)
		t.hex("base", v.Base)
		t.quoted("path", v.Path)
		t.quoted("buildid", v.BuildID)
		if v.Size != 0 {
			t.number("size", v.Size)
		}
		if v.ModTime != 0 {
			t.signed("mtime", v.ModTime)
		}
	case trace.Thread:
		t.line = append(t.line, "thread"...)
		t.number("id", uint64(v.ID))
		t.signed("tid", int64(v.TID))
		t.quoted("name", v.Name)
	case trace.Symbol:
		t.symbol(v)
	case trace.Device:
		t.line = append(t.line, "device"...)
		t.signed("index", int64(v.Index))
		t.quoted("name", v.Name)
		t.quoted("uuid", v.UUID)
		t.number("total", v.TotalBytes)
	}
}

func (t *writer) end(e trace.End) {
	t.line = append(t.line, "end"...)
	t.quoted("reason", e.Reason)
	t.number("lost_records", e.LostRecords)
	t.number("lost_rings", e.LostRings)
	t.number("lost_dict", e.LostDict)
	t.number("events", e.EventCount)
	t.signed("time", e.Time)
	t.flushLine()
}

// event writes a slice of one event.
func (t *writer) event(one []trace.Event) {
	kind := one[0].Kind
	t.line = append(t.line, kind.String()...)
	for _, f := range trace.EventSpecs[kind].Fields {
		trace.Gather(t.value[:], f, one)
		if t.value[0] != 0 {
			t.line = append(t.line, ' ')
			t.line = append(t.line, trace.FieldSpecs[f].Name...)
			t.line = append(t.line, '=')
			t.line = appendFieldText(t.line, f, t.value[0])
		}
	}
	t.flushLine()
}

// appendFieldText writes a field's value in the form that parseFieldText reads.
func appendFieldText(dst []byte, f trace.Field, v uint64) []byte {
	name, named := "", false
	switch f {
	case trace.FieldAPI, trace.FieldRuntime:
		name = cuda.API(v).String()
		api, ok := cuda.ParseAPI(name)
		named = ok && uint64(api) == v
	case trace.FieldLevel:
		name = cuda.Level(v).String()
		level, ok := cuda.ParseLevel(name)
		named = ok && uint64(level) == v
	case trace.FieldMem:
		name = cuda.MemoryKind(v).String()
		mem, ok := cuda.ParseMemoryKind(name)
		named = ok && uint64(mem) == v
	case trace.FieldObject:
		name = cuda.ObjectKind(v).String()
		object, ok := cuda.ParseObjectKind(name)
		named = ok && uint64(object) == v
	case trace.FieldCategory:
		name = trace.Category(v).String()
		category, ok := trace.ParseCategory(name)
		named = ok && uint64(category) == v
	case trace.FieldAddr, trace.FieldStream, trace.FieldHandle:
		return appendHex(dst, v)
	}
	if named {
		return append(dst, name...)
	}
	if trace.FieldSpecs[f].Signed {
		return strconv.AppendInt(dst, int64(v), 10)
	}
	return strconv.AppendUint(dst, v, 10)
}

func appendHex(dst []byte, v uint64) []byte {
	return strconv.AppendUint(append(dst, "0x"...), v, 16)
}

func (t *writer) name(name string) {
	t.line = append(t.line, ' ')
	t.line = append(t.line, name...)
	t.line = append(t.line, '=')
}

func (t *writer) number(name string, v uint64) {
	t.name(name)
	t.line = strconv.AppendUint(t.line, v, 10)
}

func (t *writer) signed(name string, v int64) {
	t.name(name)
	t.line = strconv.AppendInt(t.line, v, 10)
}

func (t *writer) hex(name string, v uint64) {
	t.name(name)
	t.line = appendHex(t.line, v)
}

func (t *writer) quoted(name, s string) {
	t.name(name)
	t.line = strconv.AppendQuote(t.line, s)
}
