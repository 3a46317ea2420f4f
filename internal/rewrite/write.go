package rewrite

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"memtrace/trace"
)

// Write writes what is live as a trace of its own, with the entries of src's dictionary that it needs, and closes the
// writer.
func (l *Live) Write(w *trace.Writer, src trace.Source) error {
	events := l.events()
	c := copier{out: w, tables: src.Tables(), written: make(map[uint32]bool)}
	c.keep(w.WriteInfo(info(src.Info())))
	for _, m := range c.tables.Modules() {
		c.keep(w.WriteModule(m))
	}
	for _, d := range c.tables.Devices() {
		c.keep(w.WriteDevice(d))
	}
	for i := range events {
		c.needs(&events[i])
	}
	c.keep(w.WriteEvents(events))
	c.keep(w.Flush(uint64(len(events)) + 1))
	c.keep(w.Close(trace.End{Reason: "snapshot", Time: l.last}))
	if c.err != nil {
		return fmt.Errorf("write what is live: %w", c.err)
	}
	return nil
}

// info leaves out what is said of the end of a run, and of what the recorder had lost by then.
func info(of trace.Info) trace.Info {
	kept := maps.Clone(of)
	maps.DeleteFunc(kept, func(key, _ string) bool {
		return slices.Contains([]string{trace.ExitStatusKey, trace.SignalKey, "process.numbers", "process.in_flight",
			"drain"}, key) || strings.HasPrefix(key, "process.lost_")
	})
	kept[trace.SnapshotKey] = "1"
	return kept
}

// copier writes entries of a dictionary, each once, those first that others refer to.
type copier struct {
	out     *trace.Writer
	tables  *trace.Tables
	written map[uint32]bool // by id: all kinds share one number space
	err     error
}

func (c *copier) keep(err error) { c.err = errors.Join(c.err, err) }

// fresh reports whether an entry is still to be written.
func (c *copier) fresh(id uint32) bool {
	if id == 0 || c.written[id] {
		return false
	}
	c.written[id] = true
	return true
}

func (c *copier) needs(e *trace.Event) {
	pool, _ := e.OwnPool()
	for _, id := range []trace.StringID{e.Tag, e.Name, pool} {
		if c.fresh(uint32(id)) {
			c.keep(c.out.WriteString(id, c.tables.String(id)))
		}
	}
	if c.fresh(uint32(e.Thread)) {
		if thread, ok := c.tables.Thread(e.Thread); ok {
			c.keep(c.out.WriteThread(thread))
		}
	}
	if c.fresh(uint32(e.Stack)) {
		c.stack(e.Stack)
	}
	if c.fresh(uint32(e.PyStack)) {
		c.pyStack(e.PyStack)
	}
}

func (c *copier) stack(id trace.StackID) {
	frames := c.tables.Stack(id)
	c.keep(c.out.WriteStack(trace.Stack{ID: id, Frames: frames, End: c.tables.StackEnd(id)}))
}

func (c *copier) pyStack(id trace.StackID) {
	frames, end := c.tables.PyStack(id)
	for _, frame := range frames {
		if code, ok := c.tables.Code(frame.Code); ok && c.fresh(uint32(frame.Code)) {
			c.keep(c.out.WriteCode(code))
		}
	}
	c.keep(c.out.WritePyStack(trace.PyStack{ID: id, Frames: frames, End: end}))
}
