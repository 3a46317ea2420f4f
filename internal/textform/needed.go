package textform

import (
	"bufio"
	"fmt"
	"io"

	"memtrace/trace"
)

// WriteEvents writes a part of a trace as Write does: the events of src, and of the dictionary what they refer
// to, each entry before the first event that needs it. Facts about the run are left out.
func WriteEvents(w io.Writer, src trace.Source) error {
	t := writer{out: bufio.NewWriter(w), src: src, info: make(trace.Info),
		needed: &neededEntries{at: make(map[entryName]int), written: make(map[entryName]bool)}}
	t.line = fmt.Appendf(t.line, "trace version=%d", trace.FormatVersion)
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
	kind kind
	id   uint32
}

// kind distinguishes entries with equal ids.
type kind uint8

const (
	stringEntry kind = iota
	stackEntry
	pyStackEntry
	codeEntry
	moduleEntry
	threadEntry
	deviceEntry
)

// neededEntries holds the places of entries that were not needed yet.
type neededEntries struct {
	at      map[entryName]int // in the dictionary, the latest
	written map[entryName]bool
	seen    int // entries of the dictionary
}

// look takes in what came to the tables.
func (n *neededEntries) look(tables *trace.Tables) {
	for ; n.seen < tables.Entries(); n.seen++ {
		if name, ok := nameOf(tables.Entry(n.seen)); ok {
			n.at[name] = n.seen
			delete(n.written, name)
		}
	}
}

// nameOf returns an entry's name; ok is false for a symbol, which no event refers to.
func nameOf(entry any) (name entryName, ok bool) {
	switch v := entry.(type) {
	case trace.String:
		return entryName{stringEntry, uint32(v.ID)}, true
	case trace.Stack:
		return entryName{stackEntry, uint32(v.ID)}, true
	case trace.PyStack:
		return entryName{pyStackEntry, uint32(v.ID)}, true
	case trace.Code:
		return entryName{codeEntry, uint32(v.ID)}, true
	case trace.Module:
		return entryName{moduleEntry, uint32(v.ID)}, true
	case trace.Thread:
		return entryName{threadEntry, uint32(v.ID)}, true
	case trace.Device:
		return entryName{deviceEntry, uint32(uint16(v.Index))}, true
	}
	return entryName{}, false
}

// need writes an entry, unless it was written before or is not known.
func (t *writer) need(kind kind, id uint32) {
	name := entryName{kind, id}
	at, known := t.needed.at[name]
	if !known || t.needed.written[name] {
		return
	}
	t.needed.written[name] = true
	tables := t.src.Tables()
	switch kind {
	case stackEntry:
		for _, pc := range tables.Stack(trace.StackID(id)) {
			if m, ok := tables.ModuleAt(pc - 1); ok {
				t.need(moduleEntry, uint32(m.ID))
			}
		}
	case pyStackEntry:
		frames, _ := tables.PyStack(trace.StackID(id))
		for _, f := range frames {
			t.need(codeEntry, uint32(f.Code))
		}
	}
	t.entry(tables.Entry(at))
	t.flushLine()
}

// needs writes what an event refers to.
func (t *writer) needs(e *trace.Event) {
	t.need(threadEntry, uint32(e.Thread))
	if e.Device >= 0 {
		t.need(deviceEntry, uint32(e.Device))
	}
	t.need(stringEntry, uint32(e.Tag))
	t.need(stringEntry, uint32(e.Name))
	t.need(stackEntry, uint32(e.Stack))
	t.need(pyStackEntry, uint32(e.PyStack))
}
