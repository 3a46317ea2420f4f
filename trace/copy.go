package trace

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Editor replaces the texts of a trace in a copy. Its methods are called in the order of the file; ids must stay as
// they are.
type Editor interface {
	Info(key, value string) (edited string, keep bool)
	String(s string) string
	Module(Module) Module
	Thread(Thread) Thread
	Device(Device) Device
	Code(Code) Code
	Symbol(Symbol) (edited Symbol, keep bool)
	OOM(report string) (edited string, keep bool)
	End(End) End
}

// Copy writes the rest of src to w, as edit has it. Events, stacks and all numbers are the same; blocks of events end
// where they end in src, if that is one file. Sections and events of kinds that this version does not know are left
// out, and so is what follows damage: src.Health reports how much that was. w is closed where src ended cleanly, and
// flushed otherwise. Its memory is that of src, which grows with the dictionary, not with the events.
func Copy(w *Writer, src Source, edit Editor) error {
	c := NewCopier(w, src, edit)
	if err := c.Run(); err != nil {
		return err
	}
	return c.Finish()
}

// faultOf returns why the contents of src are not what was written, "" if they are.
func faultOf(h Health) string {
	if h.Torn.Stretches > 0 {
		return fmt.Sprintf("damaged at byte %d, %d bytes were left out", h.Torn.At, h.Torn.Bytes)
	}
	return h.Altered
}

// Picker decides which events of a copy's beginning stay.
type Picker interface {
	// Pick takes the next events and returns those that are to be written now, some of earlier calls among them, and
	// the lowest order number that one of those still to come may have without being flagged late. It is not called
	// again after done: then these events are not among those that it returned, they and all later ones stay, and info
	// is written before them.
	Pick(batch []Event) (stay []Event, below uint64, info Info, done bool)
	// Rest returns what is left where the source ends before Pick was done.
	Rest() (stay []Event, info Info)
}

// Copier is Copy in steps, for a source that grows.
type Copier struct {
	out  *Writer
	src  Source
	edit Editor
	pick Picker

	info    Info     // of the original, as far as it was copied
	entries int      // dictionary entries copied
	oom     int      // reports of running out of memory copied
	symbols []Symbol // to be written

	tracker   BlockSource
	block     uint64 // number of the block that the last events came from, 0 before the first
	watermark uint64 // of that block
}

// NewCopier returns a Copier that has copied nothing yet.
func NewCopier(w *Writer, src Source, edit Editor) *Copier {
	c := &Copier{out: w, src: src, edit: edit, info: make(Info)}
	c.tracker, _ = src.(BlockSource)
	w.flagged = true // by the writer of src: a copy of an inconsistent file is flagged as the file is
	return c
}

// Pick lets p decide which of the first events stay. Until p is done it also decides where blocks end.
func (c *Copier) Pick(p Picker) { c.pick = p }

// Run copies what the source has now. It may be called again once the source has more.
func (c *Copier) Run() error {
	for {
		batch, err := c.src.ReadBatch()
		if err != nil && err != io.EOF {
			return fmt.Errorf("copy trace: %w", err)
		}
		last := err == io.EOF
		if err := c.step(batch, last); err != nil || last {
			return err
		}
	}
}

func (c *Copier) step(batch []Event, last bool) error {
	if c.pick != nil && !last {
		var err error
		if batch, err = c.picked(batch); err != nil || c.pick != nil {
			return errors.Join(err, c.copyFacts())
		}
	}
	return errors.Join(c.endBlock(last), c.copyFacts(), c.out.WriteEvents(batch))
}

func (c *Copier) copyFacts() error {
	return errors.Join(c.copyInfo(), c.copyEntries(), c.copyOOM())
}

// picked writes what the picker keeps, and returns the events that it does not touch.
func (c *Copier) picked(batch []Event) ([]Event, error) {
	if err := c.copyFacts(); err != nil { // what the events refer to
		return nil, err
	}
	stay, below, info, done := c.pick.Pick(batch)
	if err := c.writePicked(stay, below, info); err != nil || !done {
		return nil, err
	}
	c.pick = nil
	return batch, nil
}

func (c *Copier) writePicked(stay []Event, below uint64, info Info) error {
	if err := c.out.WriteEvents(stay); err != nil {
		return err
	}
	if len(stay) > 0 {
		if err := c.out.Flush(below); err != nil {
			return err
		}
	}
	return c.out.WriteInfo(info)
}

// HandOver ends the copying where the writer goes on with events of its own: it flushes, and from then on the writer
// flags late events itself.
func (c *Copier) HandOver() error {
	if c.pick != nil {
		stay, info := c.pick.Rest()
		if err := c.writePicked(stay, 0, info); err != nil {
			return err
		}
		c.pick = nil
	}
	c.out.flagged = false
	return c.out.Flush(c.watermark)
}

// Finish closes the copy where the source ended cleanly, and flushes it otherwise.
func (c *Copier) Finish() error {
	if c.pick != nil {
		stay, info := c.pick.Rest()
		if err := c.writePicked(stay, 0, info); err != nil {
			return err
		}
	}
	if why := faultOf(c.src.Health()); why != "" { // the copy's own sections are in order
		if err := c.out.WriteInfo(Info{AlteredKey: why}); err != nil {
			return err
		}
	}
	if end, ok := c.src.End(); ok {
		// the copy has them as dropped ones, some of which may be in the end's sum only
		if c.src.Health().Torn.Records > 0 {
			end.LostRecords, _, _ = c.src.Lost()
		}
		return c.out.Close(c.edit.End(end))
	}
	if err := c.out.Flush(0); err != nil {
		return err
	}
	return c.finishUnended()
}

// finishUnended writes the facts that the source has in place of an end.
func (c *Copier) finishUnended() error {
	src, ok := c.src.(Unended)
	if !ok {
		return nil
	}
	info := make(Info)
	for key, value := range src.Ending() {
		if value, keep := c.edit.Info(key, value); keep {
			info[key] = value
		}
	}
	return c.out.WriteInfo(info)
}

// endBlock closes the copy's block where the events written last were the end of the original's.
func (c *Copier) endBlock(last bool) error {
	if c.tracker == nil {
		return nil
	}
	number, watermark := c.tracker.CurrentBlock()
	var err error
	if c.block != 0 && (last || number != c.block) {
		err = c.out.Flush(c.watermark)
	}
	c.block, c.watermark = number, watermark
	return err
}

func (c *Copier) copyInfo() error {
	fresh := make(Info)
	info := c.src.Info()
	for _, key := range slices.Sorted(maps.Keys(info)) {
		if known, ok := c.info[key]; ok && known == info[key] {
			continue
		}
		c.info[key] = info[key]
		if value, keep := c.edit.Info(key, info[key]); keep {
			fresh[key] = value
		}
	}
	return c.out.WriteInfo(fresh)
}

func (c *Copier) copyEntries() error {
	tables := c.src.Tables()
	for ; c.entries < tables.Entries(); c.entries++ {
		entry := tables.Entry(c.entries)
		if _, isSymbol := entry.(Symbol); !isSymbol && len(c.symbols) > 0 {
			if err := c.writeSymbols(); err != nil {
				return err
			}
		}
		if err := c.copyEntry(entry); err != nil {
			return err
		}
	}
	return c.writeSymbols()
}

// writeSymbols writes those that came in a row.
func (c *Copier) writeSymbols() error {
	symbols := c.symbols
	c.symbols = c.symbols[:0]
	return c.out.WriteSymbols(symbols)
}

func (c *Copier) copyEntry(entry any) error {
	switch v := entry.(type) {
	case String:
		return c.out.WriteString(v.ID, c.edit.String(v.Value))
	case Stack:
		return c.out.WriteStack(v)
	case PyStack:
		return c.out.WritePyStack(v)
	case Code:
		return c.out.WriteCode(c.edit.Code(v))
	case Module:
		return c.out.WriteModule(c.edit.Module(v))
	case Thread:
		return c.out.WriteThread(c.edit.Thread(v))
	case Device:
		return c.out.WriteDevice(c.edit.Device(v))
	case Symbol:
		v.Frames = slices.Clone(v.Frames) // the editor may write into them
		if v, keep := c.edit.Symbol(v); keep {
			c.symbols = append(c.symbols, v)
		}
	}
	return nil
}

func (c *Copier) copyOOM() error {
	source, ok := c.src.(OOMReporter)
	if !ok {
		return nil
	}
	reports := source.OOMReports()
	for _, report := range reports[c.oom:] {
		if edited, keep := c.edit.OOM(report); keep {
			if err := c.out.WriteOOM(edited); err != nil {
				return err
			}
		}
	}
	c.oom = len(reports)
	return nil
}

// Unedited is an Editor that changes nothing. Others embed it and replace what they change.
type Unedited struct{}

// Info implements Editor.
func (Unedited) Info(_, value string) (edited string, keep bool) { return value, true }

// String implements Editor.
func (Unedited) String(s string) string { return s }

// Module implements Editor.
func (Unedited) Module(m Module) Module { return m }

// Thread implements Editor.
func (Unedited) Thread(th Thread) Thread { return th }

// Device implements Editor.
func (Unedited) Device(d Device) Device { return d }

// Code implements Editor.
func (Unedited) Code(c Code) Code { return c }

// Symbol implements Editor.
func (Unedited) Symbol(s Symbol) (edited Symbol, keep bool) { return s, true }

// OOM implements Editor.
func (Unedited) OOM(report string) (edited string, keep bool) { return report, true }

// End implements Editor.
func (Unedited) End(e End) End { return e }
