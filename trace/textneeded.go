package trace

import (
	"bufio"
	"fmt"
	"io"
)

// WriteEventsText writes a part of a trace as WriteText does: the events of src, and of the dictionary what they refer
// to, each entry before the first event that needs it. Facts about the run are left out.
func WriteEventsText(w io.Writer, src Source) error {
	t := textWriter{out: bufio.NewWriter(w), src: src, info: make(Info), needed: &neededEntries{at: make(map[entryName]int), written: make(map[entryName]bool)}}
	t.line = fmt.Appendf(t.line, "trace version=%d", FormatVersion)
	t.flushLine()
	err := t.events()
	if flushErr := t.out.Flush(); err == nil {
		err = flushErr
	}
	if err != nil {
		return fmt.Errorf("write text form: %w", err)
	}
	return nil
}

// entryName names a dictionary entry.
type entryName struct {
	kind entryKind
	id   uint32
}

// neededEntries knows where entries stand that were not asked for yet.
type neededEntries struct {
	at      map[entryName]int // in the tables' log, the latest
	written map[entryName]bool
	seen    int // entries of the log
}

// look takes in what came to the tables.
func (n *neededEntries) look(log []tableEntry) {
	for i := n.seen; i < len(log); i++ {
		e := &log[i]
		name := entryName{e.kind, e.id}
		switch v := e.value.(type) {
		case Module:
			name.id = uint32(v.ID)
		case Thread:
			name.id = uint32(v.ID)
		case Device:
			name.id = uint32(uint16(v.Index))
		case Symbol:
			continue
		}
		n.at[name] = i
		delete(n.written, name)
	}
	n.seen = len(log)
}

// need writes an entry, unless it was written before or is not known.
func (t *textWriter) need(kind entryKind, id uint32) {
	name := entryName{kind, id}
	at, known := t.needed.at[name]
	if !known || t.needed.written[name] {
		return
	}
	t.needed.written[name] = true
	tables := t.src.Tables()
	switch kind {
	case entryStack:
		for _, pc := range tables.Stack(StackID(id)) {
			if m, ok := tables.ModuleAt(pc - 1); ok {
				t.need(entryModule, uint32(m.ID))
			}
		}
	case entryPyStack:
		frames, _ := tables.PyStack(StackID(id))
		for _, f := range frames {
			t.need(entryCode, uint32(f.Code))
		}
	}
	t.entry(tables, tables.log[at])
	t.flushLine()
}

// needs writes what an event refers to.
func (t *textWriter) needs(e *Event) {
	t.need(entryThread, uint32(e.Thread))
	if e.Device >= 0 {
		t.need(entryDevice, uint32(e.Device))
	}
	t.need(entryString, uint32(e.Tag))
	t.need(entryString, uint32(e.Name))
	t.need(entryStack, uint32(e.Stack))
	t.need(entryPyStack, uint32(e.PyStack))
}
