package rewrite

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"memtrace/trace"
)

// ErrNoRoom says that there are more live blocks than the replay has memory for.
var ErrNoRoom = errors.New("there are more live blocks than MEMTRACE_GUEST_MEMORY has room for")

// CopySource is a trace that knows how many bytes of its file it has read.
type CopySource interface {
	trace.Source
	Offset() int64
}

// Copier writes a thinned copy of a trace: what lies before an offset in the file is thinned, the rest copied whole.
// The source may grow meanwhile, see Run.
type Copier struct {
	copy *trace.Copier
	edit editor
	pick picker
}

// CopyOptions say how a trace is thinned.
type CopyOptions struct {
	WholeFrom int64 // offset in the source's file from which on every event stays
	Window    int   // events that are looked at together; 0: Window
	Memory    int64 // bytes that the replay's tables of live blocks may take; 0: any
}

// NewCopier begins a copy of src to w, a fresh Writer.
func NewCopier(w *trace.Writer, src CopySource, o CopyOptions) (*Copier, error) {
	c := &Copier{pick: picker{thinner: NewThinner(cmp.Or(o.Window, ThinningWindow), o.Memory), src: src,
		wholeFrom: o.WholeFrom}}
	if err := w.WriteInfo(trace.BeginThinned()); err != nil {
		return nil, err
	}
	c.copy = trace.NewCopier(w, src, &c.edit)
	c.copy.Pick(&c.pick)
	return c, nil
}

// Run copies what the source has now. It may be called again once the source has more.
func (c *Copier) Run() error {
	if err := c.copy.Run(); err != nil {
		return err
	}
	return c.pick.err
}

// Finish ends the copy as its source ended.
func (c *Copier) Finish() error { return c.copy.Finish() }

// HandOver leaves the Writer to who goes on with it, behind all that the source has.
func (c *Copier) HandOver() error { return c.copy.HandOver() }

// Close gives memory back. It is to be called once, whatever happened.
func (c *Copier) Close() { c.pick.thinner.Close() }

// Thinned says what the copy lacks.
func (c *Copier) Thinned() trace.Thinned { return c.pick.thinned }

// editor leaves out what an earlier thinning said of itself, which the picker adds up with its own.
type editor struct{ trace.Unedited }

// Info implements trace.Editor.
func (editor) Info(key, value string) (edited string, keep bool) {
	return value, !slices.Contains(trace.ThinnedKeys(), key)
}

// End implements trace.Editor. The writer counts the events of the copy.
func (editor) End(e trace.End) trace.End {
	e.EventCount = 0
	return e
}

// picker hands events to a Thinner until the part begins that stays whole.
type picker struct {
	thinner   *Thinner
	src       CopySource
	wholeFrom int64
	thinned   trace.Thinned
	lastSeq   uint64
	lastTime  int64
	err       error
}

// Pick implements trace.Picker.
func (p *picker) Pick(batch []trace.Event) (stay []trace.Event, below uint64, info trace.Info, done bool) {
	if p.thinner.Short() {
		p.err = ErrNoRoom // what was thinned is right; the copy will not be used
	}
	if p.src.Offset() > p.wholeFrom && !trace.IsThin(p.src.Info()) {
		stay, info = p.Rest()
		return stay, p.lastSeq + 1, info, true
	}
	for i := range batch {
		p.lastSeq, p.lastTime = max(p.lastSeq, batch[i].Seq), max(p.lastTime, batch[i].Time)
	}
	stay = p.thinner.Add(batch)
	return stay, p.thinner.Below(), nil, false
}

// Rest implements trace.Picker.
func (p *picker) Rest() (stay []trace.Event, info trace.Info) {
	stay = p.thinner.Rest()
	p.thinned = p.thinner.LeftOut()
	p.thinned.Add(trace.ThinnedFrom(p.src.Info()))
	p.thinned.UntilSeq, p.thinned.UntilTime = min(p.lastSeq, math.MaxUint64-1)+1, p.lastTime
	return stay, p.thinned.Info()
}
